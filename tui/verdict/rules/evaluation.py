"""Evaluation inside training: its budget, apart from every cause of slow steps."""

from dataclasses import replace
from typing import Final

from ..code_places import (
    ROLLOUT,
    by_user_function,
    function_of,
    main_places,
    place_evidence,
    share_where,
)
from ..findings import Evidence, Finding
from ..forecast.gain import gain_of_pauses, gain_without
from ..forecast.interval import seldom, with_interval
from ..format import percent
from ..pauses import Pauses, evaluations, outliers, pause_evidence
from ..scoring import cause
from ..statistics import Share, of_samples
from ..thresholds.causes import TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_LOW
from ..window import FrameShare, StepWindow


def evaluation(window: StepWindow) -> Finding | None:
    """The amortised share of evaluations. A slow validation loader is part of it, and no reason to
    blame the training loader. Where no mark showed one (no loader, no switch), by samples."""
    found = evaluations(window)
    if found is None:
        return _by_samples(window)
    if found.share.mean < CONTRIBUTOR:
        return None
    evidence = pause_evidence(found, "evaluation")
    advice = (
        f"evaluate every {found.affordable_steps:,} steps: it would cost {percent(TARGET_BUDGET)}",
        _ADVICE["evaluation"][1],
    )
    headline = f"evaluation takes {percent(found.share.mean)} of the time"
    gain = gain_of_pauses("evaluation", window, found)
    finding = cause("evaluation", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)


ENVIRONMENTS: Final = ("step", "reset")
"""Methods of gym's environments. An optimizer's are no evaluation."""
PACKAGES: Final = ("gym/", "gymnasium/", "ale_py/", "envpool/", "pettingzoo/", "procgen/")
ACTING: Final = 0.1
"""Of the samples of an evaluation those in an environment, or in a function with such a name: most
of a rollout may be the net that chooses the actions. Of a held-out set none are."""
SAME_PAUSES: Final = 0.5
"""Regular pauses and samples of evaluations of which either holds half of the other are the same:
three chunks of samples meet between one and five of six pauses."""
_ADVICE: Final = {
    "evaluation": (
        "evaluate less often: it is a function of yours that no mark shows",
        "evaluate on a part of the held-out set, with a larger batch under torch.inference_mode()",
    ),
    "rollout": (
        "act for many environments in one batch, under torch.inference_mode()",
        "collect on other processes while this one trains",
    ),
}


def _by_samples(window: StepWindow) -> Finding | None:
    """Functions of the user's that evaluate, or act in an environment, by their names and because
    they run a net; their time is booked as forward, or as Python between the phases."""
    places = [place for place in main_places(window) if place.phase == "evaluation"]
    if window.stacks is None or not places or not any(row.backwards for row in window.steps):
        return None  # without a backward nothing is trained: the run is an inference
    share = of_samples(share_where(places, lambda _: True), window.stacks.main_samples)
    if share.low < CONTRIBUTOR:
        return None
    acting = share_where(places, _acts) > ACTING * share.mean
    paused = None if acting or window.gpu_present else _in_pauses(window, share)
    if paused is not None:
        share = paused.share
    sub, what = ("rollout", "rollouts take") if acting else (None, "evaluation takes")
    text = "no evaluation was marked: its time is booked as forward, or between the phases"
    seldom_at, cheaper = _ADVICE["rollout" if acting else "evaluation"]
    where = by_user_function(replace(one, caller=one.evaluation or one.caller) for one in places)
    if not acting and (function := where[0].frame) and places[0].evaluation:
        seldom_at = f"evaluate less often: {function}"
    evidence = [place_evidence(where[0], "main-thread"), Evidence(text, "hook")]
    if paused is not None:
        evidence.insert(1, pause_evidence(paused, "evaluation")[0])
    found = cause(
        "evaluation",
        sub,
        share,
        f"{what} {percent(share.mean)} of the time",
        tuple(evidence),
        (seldom_at, cheaper),
        gain=gain_without("evaluation", window, at_most=True),
    )
    # Rollouts are what is trained on; of evaluations nearly all can go.
    return found if acting or window.gpu_present else with_interval(found)


def _in_pauses(window: StepWindow, seen: Share) -> Pauses | None:
    """Without a GPU, the single long steps that samples show to be evaluations: they come in a
    rhythm, and hold about what samples show. These come in a few chunks of two seconds, which
    pauses of one second fill or miss (68 % for 42 %); the marks have every one of them. Whoever
    evaluates every 40 steps saves a checkpoint in the same ones."""
    found = outliers(window, beside_named=True)
    if found is None or not found.is_regular or found.spacing_steps is None:
        return None
    mean = found.each_ns / (found.each_ns + found.spacing_steps * found.step_ns)
    if min(mean, seen.mean) < SAME_PAUSES * max(mean, seen.mean):
        return None
    return replace(found, share=Share(mean, max(0.0, mean - ENTER_LOW), min(1.0, mean + ENTER_LOW)))


def _acts(place: FrameShare) -> bool:
    """In an environment: by the name of a function, or because it is one of gym's interface."""
    where = place.caller or place.frame
    if function_of(where) in ENVIRONMENTS or place.frame.partition(" (")[2].startswith(PACKAGES):
        return True
    return bool(ROLLOUT.search(f"{where} {place.frame}"))
