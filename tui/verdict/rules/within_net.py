"""On a CPU: what a net computes besides what it learns: a function whose answer no gradient goes
through, and Python's loops and lists."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..broadcast_distances import by_all_differences
from ..code_places import is_in_forward, main_places, share_held, share_seen
from ..findings import Finding, Forecast
from ..forecast.gain import gain_on_the_host
from ..forecast.interval import alone_on_cpu, interval_of
from ..format import percent
from ..loader import loader_floor
from ..place_names import (
    by_user_function,
    own_frame,
    path_of,
    place_evidence,
    place_name,
    users_function,
)
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import Share, beyond
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import constant_function
from ..window import StepWindow

LEARNED_BESIDE: Final = 2.1
"""What a loss, or a net that is no module, takes at the most as a multiple of its backward: so much
in chains of pointwise operations (`FORWARD_OF_BACKWARD_ON_CPU`), 0.1 to 1.4 of it in ten that were
written by hand (an LSTM, a CRF, Sinkhorn, SSIM). A detector's targets, set one by one: 59."""
OF_LISTS: Final = re.compile(r"\btorch\.(\w*Tensor|tensor)\((?!np\.|numpy\.)")
"""What takes long there is Python's lists: an array is copied at once."""
TURNS: Final = re.compile(r"^(?!.*\bself\.).*(\bfor\b.+\bin\b|\bwhile\b|\bsorted\(|\.append\()")
"""Turns of a loop in Python, and what a line of one does; of what a module holds nobody knows."""
OF_A_NET: Final = re.compile(r"(forward|__call__|_call_impl)")
"""In names of functions that hold a net's layers: what is learned there may be all of it."""


def unlearned(window: StepWindow) -> Finding | None:
    """A function of the user's own in a net, as one that normalises the matrix of a graph, that
    takes longer than one whose gradient is all of the backward (`LEARNED_BESIDE`): it need not be
    computed in each step, or not there (a graph network 3.9x as fast by keeping it, where samples
    showed 66 %, 35 % beyond that)."""
    backward_ns = sum(row.backward_ns for row in window.steps)
    if window.gpu_present or not backward_ns:
        return None
    by_function: dict[tuple[str, str], list[FrameShare]] = {}
    places = main_places(window)
    named = by_all_differences(places)  # a cause of their own, with more to say
    for one in places:
        if is_in_forward(one) and own_frame(one) and not _of_layers(one) and one not in named:
            by_function.setdefault(users_function(one), []).append(one)
    own = [held for (name, _), held in by_function.items() if not OF_A_NET.search(name)]
    mine = max(own, key=lambda held: sum(one.share for one in held), default=[])
    if mine and users_function(mine[0])[0] == constant_function(window):
        return None  # a cause that knows more of it
    known = LEARNED_BESIDE * backward_ns / max(1, spent(window.steps).wall_ns)
    seen = share_seen(window, mine.__contains__)
    found = at_places(
        window,
        beyond(seen, known),
        mine,
        "computed in the net, and nothing is learned through it",
        "compute it once, where it is the same in each step; or with the batch, in the loader",
    )
    return None if found is None else replace(found, forecast=up_to_seen(found, seen))


def _of_layers(place: FrameShare) -> bool:
    """PyTorch's or a library's: a frozen encoder has a rule of its own."""
    return bool(place.library or place.asked) or path_of(place.frame).startswith("torch/nn/")


def looped(window: StepWindow) -> Finding | None:
    """Loops over the parts of a batch in a backward of the user's own, and in a net loops over
    Python's numbers and lists that become tensors: samples there are all of their time (a
    `Function.backward` in NumPy: 58 % by samples, 3.1x by one call of `scatter_`)."""
    if window.gpu_present:
        return None
    loops, lists = (list(filter(which, main_places(window))) for which in (_loops, _makes_of_lists))
    mine = [*loops, *lists]
    what, instead = "Python's loops within forward and backward", "one tensor expression for all"
    if share_held(lists) > share_held(loops):
        what = "tensors made of Python's lists"
        instead = "keep what is in them in tensors, or make one array of them first (np.stack)"
    return at_places(window, share_seen(window, mine.__contains__), mine, what, instead)


def _loops(place: FrameShare) -> bool:
    if own_frame(place) != place.frame or place.makes:
        return False
    if place.phase == "backward":
        return bool(place.in_turns)
    return is_in_forward(place) and not place.computes and bool(TURNS.search(place.line))


def _makes_of_lists(place: FrameShare) -> bool:
    own = own_frame(place) == place.frame and place.phase == "forward"
    return own and not place.makes and OF_LISTS.search(place.line) is not None


def at_places(
    window: StepWindow, share: Share, places: Sequence[FrameShare], what: str, instead: str
) -> Finding | None:
    """`what` a step does at these, most of it where the function is that is named; None of too
    little."""
    if not places or share.low < CONTRIBUTOR:
        return None
    where = by_user_function(places)[0]
    return cause(
        "host",
        None,
        share,
        f"{percent(share.mean)} of each step is {what}",
        (place_evidence(where, "main-thread"),),
        (f"{instead}: {place_name(where)}",),
        loader_floor(window),
        gain_on_the_host(window, share.mean),
    )


def up_to_seen(found: Finding, seen: Share) -> Forecast | None:
    """What may have been learned need not have been: at the most all that was seen is gone."""
    forecast = forecast_on_cpu(found)
    if forecast is None or forecast.high is None:
        return forecast
    return replace(forecast, high=max(forecast.high, speedup_of(seen.high)))


def forecast_on_cpu(found: Finding) -> Forecast | None:
    """Without a GPU, of what lies beside what the net learns."""
    if found.speedup is None:
        return None
    shares = found.share, found.share_low, found.share_high
    limited = found.speedup < speedup_of(found.share or 0.0)  # the loader is the limit then
    return (interval_of if limited else alone_on_cpu)("host", found.speedup, *shares)
