"""A net that does not learn answers in each step, for a training that learns from it: a frozen
encoder, a teacher."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ..code_places import forward_of_net, share_held
from ..findings import Evidence, Finding, Forecast
from ..format import percent
from ..idle_ledger import keeps_up
from ..on_device import on_device
from ..place_names import called_at, own_frame, users_function
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import Share
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

_Name = TypeVar("_Name")

FOLLOWS: Final = re.compile(
    r"(^|[^a-z])(target|ema|momentum|mean_?teacher|old|avg_?(model|net)|averaged|shadow"
    r"|key_?encoder|slow_|tgt|polyak|lagged|pseudo|fake|netg|gen(erator)?[^a-z])",
    re.IGNORECASE,
)
"""In the frames and lines of a net that is updated after all, from the one that learns or in its
turn, as a generator: what it answers changes, and nothing of it can be stored."""

STRAY: Final = 1 / 20
"""Of a function's samples without gradients. One taken while the stack changes can lack the frame
that asks; a net that learns is seen at a fifth and more, even one that guesses for several views.
"""

BACKWARD_OF_FORWARD: Final = (1.87, 1.3, 2.6)
"""How many times as long as its forward a net's backward takes on a GPU that is 85 % busy and more:
the median of 40 generated runs on H200s without such a net (1.27 to 3.4), and where eight in ten
are. Two of three products of a step are the backward's."""
AHEAD: Final = 0.1
"""Of the steps in which the GPU may catch up with the host for its clock to show what kernels take.
"""
FEWEST_ASKED: Final = 2
FEWEST_LEARNING: Final = 3
"""Samples of a host that runs ahead of its GPU: it is seldom met where it only launches."""
SMALL: Final = 0.1
"""Of the samples of both: a net met so seldom is small, and weights that the other keeps frozen may
have shortened its backward, as LoRA's."""
NOTHING: Final = Share(0.0, 0.0, 0.0)


def frozen_net(window: StepWindow) -> Finding | None:
    """By samples; where the host runs ahead of a GPU samples show only that there is one, and how
    much longer the forward takes than its backward explains what that takes.

    A net of which the same functions were seen to learn as well may be the one that learns, or
    follows it, unless its source shows that nothing updates it; so may one of a library's, of
    which only the line that calls it is known, where any net of that library learns. What is
    stored is read again, and what draws another crop each time cannot be stored, by the source or
    without a sign of it: the forecast goes from nothing to all of it."""
    if window.stacks is None:
        return None
    inside = forward_of_net(window)
    others = [one for one in inside if not one.asked]
    asked = _not_updated([one for one in inside if one.asked], others)
    asked = [one for one in asked if not one.redrawn]
    share = seen = window.stacks.seen(asked)
    evidence: tuple[Evidence, ...] = ()
    if window.gpu_present:
        share, evidence = _on_gpu(window, seen, asked, others)
    if not asked or share.mean < CONTRIBUTOR:
        return None
    most = max(asked, key=lambda place: place.share)
    where = called_at(most.asked)
    found = cause(
        "compute",
        "frozen-net",
        share,
        f"a net that does not learn takes {percent(share.mean)} of each step",
        (Evidence(f"it is asked in {where}, without gradients", "py-spy", seen.mean), *evidence),
        (
            "compute its answers once for the whole data and store them, where nothing changes a "
            f"sample from epoch to epoch: {where}",
            "else call only the part of it that the training uses, for a whole batch at once, in "
            "bf16 or at a smaller size",
        ),
    )
    return replace(found, forecast=Forecast(speedup_of(share.mean), 1.0, speedup_of(share.high)))


def _not_updated(asked: Sequence[FrameShare], others: Sequence[FrameShare]) -> list[FrameShare]:
    """Those whose net neither learns, by what `others` show, nor follows one that does."""
    functions = _seen_to_learn(asked, others, users_function)
    libraries = _seen_to_learn(asked, others, lambda one: one.library)
    # A sample may meet PyTorch's call of a net alone, before that reaches the library's own layers.
    library_at = {one.asked: one.library for one in asked if one.library}
    moving: set[str] = set()
    for one in asked:
        if _is_librarys(one):
            library = library_at.get(one.asked, "")
            learns = not library or library in libraries
        else:
            learns = users_function(one) in functions
        if (learns and not one.fixed) or _follows(one):
            moving.add(one.asked)
    return [one for one in asked if one.asked not in moving]


def _on_gpu(
    window: StepWindow, seen: Share, asked: Sequence[FrameShare], others: Sequence[FrameShare]
) -> tuple[Share, tuple[Evidence, ...]]:
    """Its part of a step, and how that is known: as `seen` where the GPU keeps up with the host;
    where the host runs ahead, what the forward takes beyond that of the net whose backward is
    seen. Nothing where neither is sure."""
    device = on_device(window)
    if device is None or device.caught_up is None:
        return NOTHING, ()
    if keeps_up(device):
        return seen, ()
    found, learning = _count(asked), _count(others)
    few = found < FEWEST_ASKED or learning < FEWEST_LEARNING
    if device.caught_up > AHEAD or few or found < SMALL * (found + learning):
        return NOTHING, ()
    wall = sum(row.wall_ns for row in device.rows) or 1
    forward = sum(row.forward_ns for row in device.rows) / wall
    backward = sum(row.backward_ns for row in device.rows) / wall
    _, least, most = BACKWARD_OF_FORWARD
    text = f"the forward takes {percent(forward)} of each step on the GPU, the backward "
    text += f"{percent(backward)}: most backwards take {least:g} to {most:g} times their forward"
    beyond = (max(0.0, forward - backward / ratio) for ratio in BACKWARD_OF_FORWARD)
    return Share(*beyond), (Evidence(text, "event", forward),)


def _count(places: Sequence[FrameShare]) -> float:
    """Of samples."""
    return share_held(places) * places[0].samples if places else 0


def _seen_to_learn(
    asked: Iterable[FrameShare], others: Iterable[FrameShare], by: Callable[[FrameShare], _Name]
) -> set[_Name]:
    """What `others` show to learn, by its name, beyond stray samples of what is asked."""
    without: defaultdict[_Name, float] = defaultdict(float)
    learning: defaultdict[_Name, float] = defaultdict(float)
    for shares, places in ((without, asked), (learning, others)):
        for place in places:
            shares[by(place)] += place.share
    return {name for name, share in learning.items() if share > STRAY * without[name]}


def _is_librarys(place: FrameShare) -> bool:
    return called_at(own_frame(place) or "") == called_at(place.asked)


def _follows(place: FrameShare) -> bool:
    texts = (place.asked, place.frame, place.caller or "", place.line)
    return any(FOLLOWS.search(text) for text in texts)
