"""How long a step takes, in words."""

from collections.abc import Callable
from typing import Final

from ..model.snapshot import PhaseStats, Snapshot, StepStats
from ..verdict.code_places import copies_to_gpu, share_where, waits_for_gpu
from ..verdict.findings import Kind
from ..verdict.format import ms
from ..verdict.window import FrameShare, Sampled
from .numbers import count, milliseconds, percent

# Which of the bar's parts hold what the verdict blames, where that is no part of its own.

BLAMED: Final[dict[Kind, tuple[str, Callable[[FrameShare], bool]]]] = {
    "h2d": ("copies", copies_to_gpu),
    "sync": ("waits for the GPU", waits_for_gpu),
}
"""What they are called, and the places of the training thread that are such."""
LOADING: Final = ("data", "loader start-up")
"""The thread is in the loader there: it does not copy to a GPU, nor wait for one."""
MOST: Final = 0.8
"""A phase that must hold this part of them is named alone."""
LEAST: Final = 0.1
"""A shorter one is not named."""


def inside_words(snapshot: Snapshot) -> str:
    """ "copies: 63%, inside forward", by the samples of the training thread; "" where the verdict
    blames nothing of that kind, or no sample says how much it is."""
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
    share = min(other.share, share_where(snapshot.stacks.main, waits_for_gpu))
    if share < LEAST_WAIT:
        return phases
    wait_ms = other.mean_ms * share / other.share
    rest = PhaseStats("other", other.mean_ms - wait_ms, other.share - share)
    wait = PhaseStats(GPU_WAIT, wait_ms, share)
    return (*(phase for phase in phases if phase is not other), wait, rest)


def about(phase: PhaseStats) -> str:
    """ "~" before what is estimated from samples."""
    return "~" if phase.name == GPU_WAIT else ""


def _holding(phases: list[PhaseStats], share: float) -> list[str]:
    """The phase that must hold most of it since the others are too short; else all that may."""
    longest = sorted(phases, key=lambda phase: -phase.share)
    rest = sum(phase.share for phase in longest[1:])
    if longest and share - rest >= MOST * share:
        return [longest[0].name]
    return [phase.name for phase in longest if phase.share >= LEAST]


# What samples tell of a run without a probe, in words: always with "~".

NAMES: Final = {"data": "data wait", "synchronisation": "waiting for the GPU"}
WORTH: Final = 0.005
"""Parts that round to nothing are left out."""


def share_words(told: Sampled) -> list[str]:
    """ "data wait ~57%", in the order of a step; what was not seen is left out."""
    return [
        f"{NAMES.get(name, name)} ~{percent(share.mean)}"
        for name, share in told.shares.items()
        if share.mean >= WORTH
    ]


def share_interval_words(told: Sampled, name: str) -> str:
    """ "50% to 64%"."""
    share = told.share(name)
    return f"{percent(share.low)} to {percent(share.high)}"


def step_words(told: Sampled) -> str:
    """ "a step takes ~410 ms", or that nobody can tell."""
    if told.period_ns is None:
        return "how long a step takes, samples do not tell"
    return f"a step takes ~{milliseconds(told.period_ns / 1e6)}"


def waiting_words(snapshot: Snapshot) -> str:
    """What stands where steps would."""
    return (
        "waiting for the first steps" if snapshot.sampled is None else "no probe: no steps are seen"
    )


def samples_words(told: Sampled) -> str:
    """ "190 samples"."""
    return "1 sample" if told.samples == 1 else f"{count(told.samples)} samples"


TWO_KINDS: Final = 1.5
"""From a mean of so many medians on the median is of the one kind of step, and tells nothing of the
other: a batch that is waited for, a checkpoint."""


def usual_words(stats: StepStats) -> list[str]:
    """ "p50 24.5 ms", "p95 29.3 ms"; the mean before them where steps come in two kinds."""
    spread = [f"p50 {milliseconds(stats.p50_ms)}", f"p95 {milliseconds(stats.p95_ms)}"]
    mean_ms = sum(phase.mean_ms for phase in stats.phases)
    two_kinds = mean_ms >= TWO_KINDS * stats.p50_ms
    return [f"mean {milliseconds(mean_ms)}", *spread] if two_kinds else spread


def rare_words(phase: PhaseStats) -> str:
    """Of a phase that few steps have, "every 10 steps, 903 ms each", as the verdict says it: its
    other figures are of all steps. Of others ""."""
    rare = None if phase.spread is None else phase.spread.rare
    if rare is None:
        return ""
    return f"every {rare.every_steps:.0f} steps, {ms(1e6 * rare.each_ms)} each"
