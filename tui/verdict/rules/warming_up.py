"""Too early: "warming up (4/10)" instead of a guess."""

from dataclasses import replace
from typing import Final

from ..code_origin import NOWHERE
from ..code_places import main_places
from ..cycles import cycles
from ..findings import Evidence, Finding, find_missing
from ..format import ms, percent
from ..on_device import on_device
from ..pauses import checkpoints, evaluations, outliers
from ..place_names import by_user_function, place_evidence
from ..scoring import state
from ..step_time import pace_of
from ..thresholds.gpu import GPU_CLOCK_DUE_NS
from ..thresholds.hysteresis import DUE_NS, LEAST_STEPS
from ..thresholds.samples import LEAST_STACKS
from ..window import StepWindow
from ..window_selection import enough_of, long_enough
from .standstill import before_steps

NO_STEP: Final = "no step seen yet"
LONG_STEP_S: Final = 5.0
MOST_PLACES: Final = 2
LEAST_PLACE: Final = 0.10
"""Of the samples: what holds less may be over."""


def warming_up(window: StepWindow) -> Finding | None:
    """Until there are 10 steps after the warm-up, or a few long ones."""
    have = window.observed
    if not window.warmup_left and (have >= LEAST_STEPS or long_enough(window.steps)):
        return None
    if not window.steps_seen:
        lasting = _lasting(window, ": the first")
        stay, ways = before_steps(window.job) if window.job and not window.ended else ("", ())
        if stay and not lasting:
            # It may load its data for minutes, or hang: this is where.
            return state("warming-up", None, "info", f"{NO_STEP}: {stay}", ways)
        evidence = _where(window) + (_tries_kernels(window) if lasting else ())
        return state("warming-up", None, "info", NO_STEP + lasting, evidence)
    if not have or have >= enough_of(window.steps):
        # The first steps are left out, or nothing was trained yet: how far off the verdict is.
        text = f"warming up: {window.warmup_left} more steps"
    else:
        text = f"warming up ({have}/{enough_of(window.steps)})"
    text += _lasting(window, "; this one")
    return state("warming-up", None, "info", text, _where(window))


def _where(window: StepWindow) -> tuple[Evidence, ...]:
    """Where the training thread is, since the last step at most: it may read a corpus, play games
    or import for minutes. No cause follows from it. What evaluates or plays is named, not the net's
    layers below."""
    if window.open_step is not None and window.open_step.at_prompt:
        return ()
    stacks, places = window.stacks, main_places(window)
    if not places and stacks is not None and stacks.starting >= LEAST_STACKS:
        every = stacks.starting + stacks.main_samples
        share = stacks.starting / every
        counted = f"{stacks.starting:,} of {every:,} main-thread samples ({percent(share)})"
        return (Evidence(f"{counted} are in imports", "py-spy", share),)
    named = by_user_function(
        replace(one, caller=one.one_row or one.evaluation or one.caller) for one in places
    )
    return tuple(
        place_evidence(one, "main-thread")
        for one in named[:MOST_PLACES]
        if one.share >= LEAST_PLACE and one.frame != NOWHERE
    )


def _tries_kernels(window: StepWindow) -> tuple[Evidence, ...]:
    """cuDNN does so for each layer's sizes when it first meets them: 8 to 14 s and more of the
    first step of a segmentation net, of HiFi-GAN's and of a U-Net, on an H200 just begun."""
    settings = window.settings
    if not window.gpu_present or settings is None or not settings.cudnn_benchmark:
        return ()
    text = (
        "torch.backends.cudnn.benchmark is on: each layer's kernels are tried for its sizes, once"
    )
    return (Evidence(text, "hook"),)


def _lasting(window: StepWindow, which: str) -> str:
    """What takes long before the next one: cuDNN chose its kernels for 20 s in an SSD's first, and
    for 5 s in the first that trained behind an evaluation (RepDistiller)."""
    now = window.open_step
    if now is None or window.ended or now.at_prompt or not now.ends:
        return ""
    if (now.step_lasted_s or 0.0) < LONG_STEP_S:
        return ""
    return f"{which} has lasted {now.step_lasted_s:.0f} s, now in {now.phase}"


def gpu_clock_due(window: StepWindow) -> Finding | None:
    """The GPU's clock will cover these steps, and does not yet."""
    if not (window.gpu_present and window.gpu_clocked) or window.ended:
        return None
    if on_device(window) is not None:
        return None
    if window.steps[-1].end_ns - window.steps[0].start_ns >= GPU_CLOCK_DUE_NS:
        return None
    return state("warming-up", None, "info", "waiting for the GPU's own step times")


def paused_once(window: StepWindow) -> Finding | None:
    """One pause is no share of the time: it may never come again. But before there was time for
    another, a verdict on the steps beside it is none on the run either. Its share is what it would
    be if one came in each such time."""
    span_ns = window.steps[-1].end_ns - window.steps[0].start_ns
    if window.ended or span_ns >= DUE_NS:
        return None
    seen = [(0.0, "")]
    for noun, found in (
        ("evaluation", None if cycles(window) else evaluations(window)),
        ("checkpoint", checkpoints(window)),
        ("step", outliers(window)),
    ):
        if found is not None and found.events == 1:
            share = found.each_ns / (found.each_ns + found.every_steps * found.step_ns)
            seen.append((share, f"one {noun} took {ms(found.each_ns)}"))
    now = window.open_step
    lasted_ns = (now.step_lasted_s or 0.0) * 1e9 if now is not None else 0.0
    if now is not None and lasted_ns > max(map(pace_of, window.steps)):
        text = f"one step has lasted {ms(lasted_ns)}, in {now.phase},"
        seen.append((lasted_ns / (span_ns + lasted_ns), text))
    share, what = max(seen)
    headline = f"not sure yet: {what} so far, which may come again"
    return replace(state("warming-up", None, "info", headline), share=share) if share else None


def collectives_due(window: StepWindow) -> Finding | None:
    """The collectives of its ranks will show whether a job's GPU works or waits, and do not yet."""
    job = window.job
    if job is None or not job.reading or window.ended:
        return None
    if find_missing(window.missing, "collectives") is not None:
        return None
    text = f"reading the collectives of {len(job.ranks)} ranks"
    return state("warming-up", None, "info", text)
