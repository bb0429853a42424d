"""Steps in words: how long they take, what is inside a phase, what stack samples estimate."""

from collections.abc import Callable
from typing import Final

from ..model.snapshot import PhaseStats, Snapshot, StepStats
from ..verdict.code_places import copies_to_gpu, share_where, waits_for_gpu
from ..verdict.findings import Kind
from ..verdict.format import ms
from ..verdict.stack_samples import FrameShare, Sampled
from .numbers import count, milliseconds, percent

# Causes that have no phase of their own: which phases contain them.

BLAMED: Final[dict[Kind, tuple[str, Callable[[FrameShare], bool]]]] = {
    "h2d": ("copies", copies_to_gpu),
    "sync": ("waits for the GPU", waits_for_gpu),
}
"""The words for a cause, and which places of the training thread belong to it."""
LOADING: Final = ("data", "loader start-up")
"""Phases in the loader: no copies to a GPU and no waits for one."""
MOST: Final = 0.8
"""A phase that must contain this part of the cause is named alone."""
LEAST: Final = 0.1
"""Phases with a smaller share of the step are not named."""


def inside_words(snapshot: Snapshot) -> str:
    """ "copies: 63%, inside forward", by the samples of the training thread; "" where the verdict
    is of another kind, or nothing was sampled."""
    blamed = BLAMED.get(snapshot.verdict.finding.kind)
    if blamed is None or snapshot.stacks is None or snapshot.steps is None:
        return ""
    name, which = blamed
    finding = snapshot.verdict.finding
    share = share_where(snapshot.stacks.main, which)
    if finding.kind == "h2d" and finding.share is not None:
        share = finding.share  # what the headline says: some lines copy while the GPU works
    phases = [phase for phase in snapshot.steps.phases if phase.name not in LOADING]
    drawn = sum(phase.share for phase in drawn_phases(snapshot) if phase.name == GPU_WAIT)
    if finding.kind == "sync" and drawn >= MOST * share:
        return ""  # the bar shows it
    names = _holding(phases, share)
    return f"{name}: {percent(share)}, inside {' + '.join(names)}" if share and names else ""


GPU_WAIT: Final = "synchronisation"
"""The name of the phase in which the training thread waits for the GPU."""
LEAST_WAIT: Final = 0.05
"""Of the samples: with fewer nobody can say how much of the step it is."""


def drawn_phases(snapshot: Snapshot) -> tuple[PhaseStats, ...]:
    """The window's phases, with the wait for the GPU apart from the rest of `other`: by samples of
    the training thread, for no clock of the step sees it."""
    phases = snapshot.steps.phases if snapshot.steps else ()
    other = next((phase for phase in phases if phase.name == "other"), None)
    if other is None or snapshot.stacks is None or not snapshot.gpus:
        return phases
    share = min(other.share, share_where(snapshot.stacks.main, _waits_between))
    if share < LEAST_WAIT:
        return phases
    wait_ms = other.mean_ms * share / other.share
    rest = PhaseStats("other", other.mean_ms - wait_ms, other.share - share)
    wait = PhaseStats(GPU_WAIT, wait_ms, share)
    return (*(phase for phase in phases if phase is not other), wait, rest)


def _waits_between(place: FrameShare) -> bool:
    """A wait within a net's forward is the forward's time."""
    return waits_for_gpu(place) and not place.in_net


def about(phase: PhaseStats) -> str:
    """ "~" before what is estimated from samples."""
    return "~" if phase.name == GPU_WAIT else ""


def _holding(phases: list[PhaseStats], share: float) -> list[str]:
    """The phase that must contain most of it since the others are too short; else all that may."""
    longest = sorted(phases, key=lambda phase: -phase.share)
    rest = sum(phase.share for phase in longest[1:])
    if longest and share - rest >= MOST * share:
        return [longest[0].name]
    return [phase.name for phase in longest if phase.share >= LEAST]


# A run without a probe: estimates from stack samples, always with "~".

NAMES: Final = {"data": "data wait", GPU_WAIT: "GPU wait"}
"""Phases whose name on every face is not their own."""
WORTH: Final = 0.005
"""Smaller shares round to nothing and are left out."""


def share_words(sampled: Sampled) -> list[str]:
    """ "data wait ~57%", in the order of a step; what was never seen is left out."""
    return [
        f"{NAMES.get(name, name)} ~{percent(share.mean)}"
        for name, share in sampled.shares.items()
        if share.mean >= WORTH
    ]


def share_interval_words(sampled: Sampled, name: str) -> str:
    """ "50% to 64%"."""
    share = sampled.share(name)
    return f"{percent(share.low)} to {percent(share.high)}"


def step_words(sampled: Sampled) -> str:
    """ "~410 ms per step", or that it is unknown."""
    if sampled.period_ns is None:
        return "step time unknown: samples show no period"
    return f"~{milliseconds(sampled.period_ns / 1e6)} per step"


def waiting_words(snapshot: Snapshot) -> str:
    """Shown where steps would be."""
    return (
        "waiting for the first steps" if snapshot.sampled is None else "no probe: steps not visible"
    )


def samples_words(sampled: Sampled) -> str:
    """ "190 samples"."""
    return "1 sample" if sampled.samples == 1 else f"{count(sampled.samples)} samples"


TWO_KINDS: Final = 1.5
"""From a mean of so many medians on there are two kinds of step, such as with and without a
checkpoint, and the median describes only one of them."""


def usual_words(stats: StepStats) -> list[str]:
    """ "p50 24.5 ms", "p95 29.3 ms"; the mean before them where steps come in two kinds."""
    spread = [f"p50 {milliseconds(stats.p50_ms)}", f"p95 {milliseconds(stats.p95_ms)}"]
    mean_ms = sum(phase.mean_ms for phase in stats.phases)
    two_kinds = mean_ms >= TWO_KINDS * stats.p50_ms
    return [f"mean {milliseconds(mean_ms)}", *spread] if two_kinds else spread


def rare_words(phase: PhaseStats) -> str:
    """For a phase that few steps have, "every 10 steps, 903 ms each", or "one so far, 903 ms"; ""
    for others. Its other figures are means over all steps."""
    rare = None if phase.spread is None else phase.spread.rare
    if rare is None:
        return ""
    each = ms(1e6 * rare.each_ms)
    if rare.every_steps is not None:
        return f"every {rare.every_steps:.0f} steps, {each} each"
    return f"one so far, {each}" if rare.events == 1 else f"{rare.events} so far, {each} each"
