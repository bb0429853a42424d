"""Evaluation inside training: its budget, apart from every cause of slow steps."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from ..code_places import main_places
from ..cycles import Cycles, best_known
from ..findings import Evidence, Finding, Forecast
from ..forecast.gain import Gain, gain_of_pauses, gain_without
from ..forecast.interval import interval_of, seldom, with_interval
from ..format import ms, percent
from ..idle_ledger import idle_ledger
from ..loader import loader_floor, often_late
from ..on_device import idle_of, on_device
from ..pauses import Pauses, evaluation_data_part, evaluation_start_ns, pause_evidence
from ..place_names import by_user_function, own_frame, place_evidence
from ..scoring import cause, speedup_of, state
from ..stack_samples import FrameShare
from ..statistics import Share
from ..step_time import spent, wall_of
from ..thresholds.causes import EVALUATION_STARTS, RHYTHM_EVENTS, TARGET_BUDGET
from ..thresholds.gpu import GPU_BUSY
from ..thresholds.hysteresis import CONTRIBUTOR
from ..unmarked_evaluation import (
    LITTLE_BEHIND,
    Unmarked,
    behind_ns,
    draws,
    draws_texts,
    evaluating_pauses,
    what_evaluates,
)
from ..window import StepWindow


def evaluation(window: StepWindow) -> Finding | None:
    """The amortised share of evaluations. A slow validation loader is part of it, and no reason to
    blame the training loader. Where no mark showed one (no loader, no switch), by samples."""
    found = best_known(window)
    if found is None:
        return _by_samples(window)
    return _by_cycles(window, found) if isinstance(found, Cycles) else _of_pauses(window, found)


def _of_pauses(window: StepWindow, found: Pauses) -> Finding | None:
    if found.share.mean < CONTRIBUTOR:
        return None
    evidence = pause_evidence(found, "evaluation")
    advice = (
        f"evaluate every {found.affordable_steps:,} steps: it would cost {percent(TARGET_BUDGET)}",
        _larger_batches(window),
    )
    starts_ns = evaluation_start_ns(window)
    if starts_ns >= EVALUATION_STARTS * found.each_ns:
        text = f"of it {ms(starts_ns)} start and end the workers of its loader"
        evidence = (*evidence, Evidence(text, "hook", starts_ns / 1e6, "ms"))
        kept = "make its loader once, with persistent_workers=True: workers start for each"
        advice = (advice[0], kept)
    elif (part := evaluation_data_part(window)) >= MOSTLY_WAITS:
        text = f"{percent(part)} of it waits for batches of its loader"
        evidence = (*evidence, Evidence(text, "hook", part))
        advice = (advice[0], f"make its batches once and keep them: they are {percent(part)} of it")
    headline = f"evaluation takes {percent(found.share.mean)} of the time"
    gain = gain_of_pauses("evaluation", window, found)
    finding = cause("evaluation", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)


def _larger_batches(window: StepWindow) -> str:
    """Of a loader whose batches are a fraction of the training's, as a validation's of one picture
    each (57 % of a segmentation's time)."""
    trained = max((one.batch_size or 0 for one in window.loaders), default=0)
    sizes = [one.batch_size for one in window.evaluation_loaders if one.batch_size]
    if not sizes or min(sizes) * SMALL_BATCH > trained:
        return ADVICE["evaluation"][1]
    return (
        f"batch_size {min(sizes)} → {trained} in its loader, as the training has, {_UNDER}; or "
        "evaluate on a part of the held-out set"
    )


def _by_cycles(window: StepWindow, whole: Cycles) -> Finding | None:
    """By training from one evaluation to the next. After one or two nobody knows for sure that
    another one comes; the headline says how many there were."""
    pauses = whole.pauses
    finding = _of_pauses(window, pauses)
    if finding is None:
        return None
    seen = Evidence(f"evaluation: {_how_often(whole)}", "hook", pauses.each_ns / 1e6, "ms")
    advice = finding.advice
    if whole.epochs:
        epoch_ns = pauses.step_ns * pauses.every_steps
        epochs = ceil(pauses.each_ns * (1 - TARGET_BUDGET) / TARGET_BUDGET / epoch_ns)
        rarely = f"evaluate every {epochs} epochs: it would cost {percent(TARGET_BUDGET)}"
        advice = (rarely, *advice[1:])
    few = whole.count < RHYTHM_EVENTS
    if whole.alone:
        # A run that went on from a checkpoint began within a cycle: the next may be later.
        finding = replace(finding, speedup_is="bound", forecast=None)
    return replace(
        finding,
        headline=f"{finding.headline}{' so far' if few else ''}",
        evidence=(seen, *finding.evidence[1:]),
        advice=advice,
        goes_on=whole.goes_on if few else 1.0,
    )


def _how_often(whole: Cycles) -> str:
    pauses, count = whole.pauses, whole.count
    if whole.alone:
        return f"one so far, after {pauses.every_steps:.0f} steps, {ms(pauses.each_ns)}"
    unit = "epoch" if whole.epochs else f"{pauses.every_steps:.0f} steps"
    return f"one after each {unit} so far ({count} of {count}), {ms(pauses.each_ns)}"


def evaluation_under_way(window: StepWindow) -> Finding | None:
    """The run's first one before its end: upstream's DeepLab trains for 15 s and evaluates for 31,
    in which no step ends. What it has taken so far, and no more: it may be the last thing that the
    run does."""
    cycle, now = window.under_way, window.open_step
    if cycle is None or now is None or window.ended or now.at_prompt or not now.ends:
        return None
    share = cycle.evaluation_ns / cycle.wall_ns
    if share < CONTRIBUTOR:
        return None
    lasted, steps = ms(cycle.evaluation_ns), f"{cycle.steps:,} steps"
    return state(
        "evaluation",
        None,
        "info",
        f"one evaluation has taken {lasted} so far, {percent(share)} of the time",
        (Evidence(f"it began after {steps} of training", "hook", float(cycle.steps)),),
        (f"if it comes again every {steps}: evaluate less often, or on a part of the set",),
    )


HEADLINES: Final[dict[Unmarked, str]] = {
    "evaluation": "evaluation takes",
    "rollout": "rollouts take",
    "generation": "generation takes",
}
OTHER_EVALUATION: Final = 4.0
"""Times as long as the longest step so far: none of those held one."""
MOSTLY_WAITS: Final = 0.5
"""Of an evaluation, the part from which on its loader's batches are what to change."""
SMALL_BATCH: Final = 4
"""Times as large the training's batches are."""
_UNDER: Final = "under torch.inference_mode()"
ADVICE: Final[dict[Unmarked, tuple[str, str]]] = {
    "evaluation": (
        "evaluate less often: it is a function of yours that no mark shows",
        f"evaluate on a part of the held-out set, with a larger batch {_UNDER}",
    ),
    "rollout": (
        f"act for more environments in one batch, {_UNDER}",
        "collect on other processes while this one trains",
    ),
    "generation": (
        f"generate more at once, {_UNDER}",
        "generate on other processes while this one trains",
    ),
}
# GPT-2 on an H200, 64 tokens for each of 8 prompts: 3.2x by graphs over a static cache.
_LAUNCHES: Final = (
    'fewer launches a token: a static cache and torch.compile(mode="reduce-overhead") or a '
    "CUDA graph, or an inference engine such as vLLM",
    f"generate for more prompts at once, {_UNDER}",
)
_FEWER_SAMPLES: Final = f"draw fewer or shorter samples, {_UNDER}"
_MANY_STATES: Final = f"ask the net for many states in one forward, {_UNDER}"


def _by_samples(window: StepWindow) -> Finding | None:
    """Functions of the user's that evaluate, act in an environment or generate, by their names, by
    their source and because they run a net; their time is booked as forward, or as Python between
    the phases."""
    places = [place for place in main_places(window) if place.phase == "evaluation"]
    if window.stacks is None or not places or not any(row.backwards for row in window.steps):
        return None  # without a backward nothing is trained: the run is an inference
    share = window.stacks.seen(places)
    if share.low < CONTRIBUTOR:
        return None
    what = what_evaluates(window)
    launches = what == "generation" and _waits_for_launches(window)
    acting = what != "evaluation"
    paused = evaluating_pauses(window)
    if paused is not None:
        share = paused.share
    elif _is_first(window):
        return None
    if share.mean < CONTRIBUTOR:
        return None  # all but the wait for the training's kernels
    text = "no evaluation was marked: its time is booked as forward, or between the phases"
    seldom_at, cheaper = _LAUNCHES if launches else ADVICE[what]
    where = by_user_function(replace(one, caller=one.evaluation or one.caller) for one in places)
    if not acting and (function := where[0].frame) and places[0].evaluation:
        seldom_at = f"evaluate less often: {function}"
        if draws(function):
            seldom_at, cheaper = f"sample less often: {function}", _FEWER_SAMPLES
    elif not acting and (asked := _asked_at(places)):
        seldom_at = f"evaluate less often: {asked}"
    evidence = [place_evidence(where[0], "main-thread"), Evidence(text, "hook")]
    if what == "rollout" and (one_row := _asked_for_one(places)):
        seldom_at = f"{_MANY_STATES}: {one_row} asks for one at a time"
    if paused is not None:
        evidence.insert(1, pause_evidence(paused, "evaluation")[0])
    found = cause(
        "evaluation",
        "rollout" if acting else None,
        share,
        f"{HEADLINES[what]} {percent(share.mean)} of the time",
        tuple(evidence),
        (seldom_at, cheaper),
        gain=_gain(window, share),
    )
    if acting:
        found = replace(found, speedup_is="bound")  # what is trained on cannot go
        return replace(found, forecast=_without_launching(window)) if launches else found
    # Of evaluations nearly all can go; a GPU that is behind hides how much goes with them.
    hidden = window.gpu_present and found.speedup_is == "bound"
    return found if hidden else with_interval(found)


def _is_first(window: StepWindow) -> bool:
    """The step that is under way has lasted longer than all others of the window, and none before
    it so long as to hold another evaluation: there is no share of it yet (24 batches of a first
    epoch lay ready and took 0.4 s, and evaluation "100 %")."""
    now = window.open_step
    if now is None or now.step_age_s is None or window.ended or now.at_prompt:
        return False
    lasted_ns = 1e9 * now.step_age_s
    longest_ns = max((wall_of(row) for row in window.all_recent), default=0)
    return lasted_ns >= max(spent(window.steps).wall_ns, OTHER_EVALUATION * longest_ns)


def _asked_for_one(places: Sequence[FrameShare]) -> str:
    """The frame that asks the net for one state at a time, where most of its samples are so."""
    asked = dict[str, float]()
    for one in places:
        if one.in_net:
            asked[one.one_row] = asked.get(one.one_row, 0.0) + one.share
    return max(asked, key=asked.__getitem__, default="")


def _waits_for_launches(window: StepWindow) -> bool:
    """On a GPU that has time left what draws a token at a time does."""
    return window.gpu_present and idle_of(window) >= 1 - GPU_BUSY and draws_texts(window)


def _without_launching(window: StepWindow) -> Forecast | None:
    """The GPU's idle time in pauses goes, with what launches of other graphs have shown (GRPO on an
    H200: 2.2x of this, 3.2x measured)."""
    ledger = idle_ledger(window)
    return None if ledger is None else interval_of("launch", speedup_of(ledger.shares["pauses"]))


def _asked_at(places: Sequence[FrameShare]) -> str:
    """The line within the training's own function that holds most; "" where it could not be
    read."""
    most = max(places, key=lambda place: place.share)
    frame, line = own_frame(most), most.line
    return f'{frame}: "{line}"' if frame and line else ""


def _gain(window: StepWindow, share: Share) -> Gain | None:
    """On a GPU that keeps up its part of the time: of pauses that one in hundreds of steps has, the
    steps that the GPU's clock has measured hold none, and a replay knows of no more than samples of
    single steps (nanoGPT: at most 1.3x, and 1.7x was measured). Where the GPU is behind, an
    evaluation's first result waits for the training."""
    device, behind = on_device(window), behind_ns(window)
    if device is None or behind is None or behind >= LITTLE_BEHIND * device.step_ns:
        return gain_without("evaluation", window, at_most=True)
    speedup = speedup_of(share.mean, loader_floor(window))
    return Gain(speedup, "bound" if often_late(window) else "estimate")
