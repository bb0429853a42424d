"""On a CPU: a net that does not learn answers in each step, for a training that learns from it: a
frozen encoder, a teacher."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeVar

from ..code_places import forward_of_net
from ..findings import Evidence, Finding, Forecast
from ..format import percent
from ..place_names import called_at, own_frame, users_function
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
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


def frozen_net(window: StepWindow) -> Finding | None:
    """By samples; a GPU's time is not the host's. A net of which the same functions were seen to
    learn as well may be the one that learns, or follows it; so may one of a library's, of which
    only the line that calls it is known, where any net of that library learns. What is stored is
    read again, and what draws another crop each time cannot be stored: the forecast goes from
    nothing to all of it."""
    if window.gpu_present or window.stacks is None:
        return None
    inside = forward_of_net(window)
    asked = [one for one in inside if one.asked]
    others = [one for one in inside if not one.asked]
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
        if learns or _follows(one):
            moving.add(one.asked)
    asked = [one for one in asked if one.asked not in moving]
    share = window.stacks.seen(asked)
    if not asked or share.mean < CONTRIBUTOR:
        return None
    most = max(asked, key=lambda place: place.share)
    where = called_at(most.asked)
    found = cause(
        "compute",
        "frozen-net",
        share,
        f"a net that does not learn takes {percent(share.mean)} of each step",
        (Evidence(f"it is asked in {where}, without gradients", "py-spy", share.mean),),
        (
            "compute its answers once for the whole data and store them, where nothing changes a "
            f"sample from epoch to epoch: {where}",
            "else call only the part of it that the training uses, for a whole batch at once, in "
            "bf16 or at a smaller size",
        ),
    )
    return replace(found, forecast=Forecast(speedup_of(share.mean), 1.0, speedup_of(share.high)))


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
