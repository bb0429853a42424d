"""Steps divided into phases: sums over steps, which always add up to the wall time."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from probe.wire.messages import Step
from tui.snapshot import Phase, Spread

START_UP = "loader start-up"
ALWAYS = ("data", "forward", "backward", "optimizer", "other")
"""Shown even when they take nothing: a measured zero is an answer."""
OF_INFERENCE = ("data", "forward", "other")

# Four times a second over all the steps of a window: one sum for each field takes a quarter of what
# a loop over the steps does.
_FIRST: Final = {
    "data": attrgetter("data_ns"),
    START_UP: attrgetter("startup_ns"),
    "forward": attrgetter("forward_ns"),
    "backward": attrgetter("backward_ns"),
    "optimizer": attrgetter("optimizer_ns"),
}
_REST: Final = {
    "other": attrgetter("other_ns"),
    "evaluation": attrgetter("evaluation_ns"),
    "checkpoint": attrgetter("checkpoint_ns"),
    "compile": attrgetter("compile_ns"),
}
_NAMED = attrgetter("phases")
_START_NS, _END_NS = attrgetter("start_ns"), attrgetter("end_ns")


def phase_sums(steps: Sequence[Step]) -> dict[str, int]:
    """ns by phase over `steps`, in the order in which a step passes through them.

    What no phase claims goes to "other", so the sums add up to the steps' wall time.
    """
    sums = {name: sum(map(ns_of, steps)) for name, ns_of in _FIRST.items()}
    named: dict[str, int] = {}
    for phases in filter(None, map(_NAMED, steps)):
        for name, ns in phases.items():
            named[name] = named.get(name, 0) + ns
    rest = {name: sum(map(ns_of, steps)) for name, ns_of in _REST.items()}
    for part in (named, rest):
        for name, ns in part.items():
            sums[name] = sums.get(name, 0) + ns  # a user's phase may bear one of our names
    wall = sum(map(_END_NS, steps)) - sum(map(_START_NS, steps))
    sums["other"] += max(0, wall - sum(sums.values()))
    return sums


def phases_of(
    steps: Sequence[Step], count: int, inference: bool, spreads: Mapping[str, Spread]
) -> tuple[Phase, ...]:
    """The phases of `count` steps, ratio of sums: the shares add up to 1. `spreads` by name."""
    sums = phase_sums(steps)
    total = sum(sums.values())
    always = OF_INFERENCE if inference else ALWAYS
    return tuple(
        Phase(name, ns / count / 1e6, ns / total if total else 0.0, spreads.get(name))
        for name, ns in sums.items()
        if ns or name in always
    )
