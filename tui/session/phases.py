"""Steps divided into phases: sums over steps, which always add up to the wall time."""

from collections.abc import Iterable, Mapping

from probe.wire.messages import Step
from tui.snapshot import Phase, Spread

START_UP = "loader start-up"
ALWAYS = ("data", "forward", "backward", "optimizer", "other")
"""Shown even when they take nothing: a measured zero is an answer."""
OF_INFERENCE = ("data", "forward", "other")


def phase_sums(steps: Iterable[Step]) -> dict[str, int]:
    """ns by phase over `steps`, in the order in which a step passes through them.

    What no phase claims goes to "other", so the sums add up to the steps' wall time.
    """
    wall = 0
    sums = dict.fromkeys(("data", START_UP, "forward", "backward", "optimizer"), 0)
    named: dict[str, int] = {}
    rest = {"other": 0, "evaluation": 0, "checkpoint": 0, "compile": 0}
    for step in steps:
        wall += step.end_ns - step.start_ns
        sums["data"] += step.data_ns
        sums[START_UP] += step.startup_ns
        sums["forward"] += step.forward_ns
        sums["backward"] += step.backward_ns
        sums["optimizer"] += step.optimizer_ns
        rest["other"] += step.other_ns
        rest["evaluation"] += step.evaluation_ns
        rest["checkpoint"] += step.checkpoint_ns
        rest["compile"] += step.compile_ns
        for name, ns in step.phases.items():
            named[name] = named.get(name, 0) + ns
    for part in (named, rest):
        for name, ns in part.items():
            sums[name] = sums.get(name, 0) + ns  # a user's phase may bear one of our names
    sums["other"] += max(0, wall - sum(sums.values()))
    return sums


def phases_of(
    steps: Iterable[Step], count: int, inference: bool, spreads: Mapping[str, Spread]
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
