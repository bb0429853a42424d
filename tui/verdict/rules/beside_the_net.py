"""On a CPU: tensors that a step computes in no net: for its batch, and when its update is made."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..code_places import BETWEEN, clips, is_users, main_places, share_seen, within
from ..findings import Finding
from ..place_names import own_frame
from ..stack_samples import FrameShare
from ..statistics import beyond
from ..step_time import named_ns, spent
from ..window import StepWindow
from .within_net import LEARNED_BESIDE, at_places, up_to_seen

UPDATED: Final = re.compile(r"\.grad\b|\.data\b")
"""Lines of an update that the user has written."""


def beside_the_net(window: StepWindow) -> Finding | None:
    """On a CPU: tensors that a function of the user's own computes in no net, as a tree of points
    for each batch (KD-Net: 85 % of a step). The loss is such a function too, and what is learned is
    gone back through: the backward, and twice as much before it, may be its own. (What the stacks
    know to be neither, `Stacks.main_unplaced`, leaves out all between the net and its backward,
    where ACER's loop is.) Phases that the user has named say themselves what they are.

    What the source shows to be done behind the update is no loss: all of it counts (a state that is
    copied and checked in each step: 1.5x without it, and nothing was said for a backward of 26 %).
    With a loader its time lies between the phases, where the marks have it."""
    backward_ns = sum(row.backward_ns for row in window.steps)
    if window.gpu_present or not backward_ns:
        return None
    places = main_places(window)
    read = [one for one in users_lines(places) if own_frame(one) and one.line]  # else a net, in C
    awake = [one for one in read if one.phase != "waiting"]
    mine = [one for one in awake if not (clips(one) or UPDATED.search(one.line))]
    whole_ns = max(1, spent(window.steps).wall_ns)
    named = named_ns(window.steps) / whole_ns
    seen = share_seen(window, mine.__contains__)
    share = beyond(seen, named + LEARNED_BESIDE * backward_ns / whole_ns)
    behind = [] if window.sees_loading else [one for one in places if _is_behind(one)]
    surely = beyond(share_seen(window, behind.__contains__), named)
    if surely.mean > share.mean:
        instead = "do it less often, or on a part of it"
        return at_places(window, surely, behind, "computed behind the update", instead)
    instead = "do it in one tensor expression or in NumPy, or once for all epochs"
    found = at_places(window, share, mine, "computed beside the net", instead)
    return None if found is None else replace(found, forecast=up_to_seen(found, seen))


def _is_behind(place: FrameShare) -> bool:
    """Done behind the update, also in a function of PyTorch's that is called there (a metric's
    `torch.unique`): what a stack alone would take for the forward."""
    if not place.beside or place.in_net or place.phase not in BETWEEN - {"waiting"}:
        return False
    return bool(own_frame(place) and place.line) and not (
        clips(place) or UPDATED.search(place.line)
    )


def users_lines(places: Sequence[FrameShare]) -> list[FrameShare]:
    """The user's own lines in no net, of no fetch, backward or update."""
    return [one for one in within(places, BETWEEN) if is_users(one) and not one.in_net]
