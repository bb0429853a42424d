"""Evaluations, and rollouts, that no mark shows: by the samples, and by the long steps that these
show them to be."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal

from .code_places import evaluates, main_places, share_seen, share_where, within
from .on_device import on_device
from .pauses import Pauses, outliers
from .place_names import called_function, function_of, own_frame, path_of
from .stack_samples import FrameShare, StackPhase
from .statistics import Share
from .thresholds.causes import SAME_PAUSES
from .thresholds.hysteresis import CONTRIBUTOR, ENTER_LOW
from .thresholds.samples import ENVIRONMENT_METHODS, ENVIRONMENT_PACKAGES, VECTOR_METHODS
from .window import RunFacts, StepWindow

ACTS: Final = re.compile(r"(\w+_)?self_?play(_\w+)?|(select|choose|get)_actions?")
"""Whole names of functions that can but act in an environment…"""
ROLLOUT: Final = re.compile(
    r"(\w+_)?rollouts?|(_|do_|run_)*(collect|gather)_(rollouts?|trajector\w+|experiences?|episodes?)"
)
"""…and of those that do if a `step` or a `reset` is called there: a net of flows, or of motions,
has rollouts and trajectories too."""
GENERATES: Final = re.compile(r"(\w+_)?(generate|samples?)(_\w+)?")
"""Whole names of functions that draw from a net."""
TOKENS: Final = re.compile(
    r"token|\beos\b|logits|multinomial|past_key|kv_?cache|\bcache\b|idx_(next|cond)|top_[kp]\b"
)
"""What a line has that draws texts."""
LIBRARY_GENERATES: Final = "transformers/generation/"
ACTING: Final = 0.1
"""Of the samples of an evaluation those in an environment, or in a function with such a name: most
of a rollout may be the net that chooses the actions. Of a held-out set none are."""
LITTLE_BEHIND: Final = 0.1
"""Part of a step by which a GPU may be behind without hiding what the host does between two: 0.003
to 0.07 of it in nanoGPT and PPO, 0.6 to 0.9 in nets that are the limit themselves (H200)."""

OUTSIDE: Final[frozenset[StackPhase]] = frozenset(
    ("other", "synchronisation", "waiting", "checkpoint", "compile")
)
"""Phases of samples that long steps may hold, beside an evaluation between their own phases."""

Unmarked = Literal["evaluation", "rollout", "generation"]


def what_evaluates(window: RunFacts) -> Unmarked:
    """Whether what evaluates there acts in an environment, or draws from a net what a training
    then learns from, as GRPO its texts. What is drawn for a look is an evaluation."""
    places = [place for place in main_places(window) if evaluates(place)]
    whole = share_where(places, lambda _: True)
    if share_where(places, _acts) > ACTING * whole:
        return "rollout"
    fed = share_where(places, lambda place: place.feeds)
    return "generation" if fed > whole / 2 else "evaluation"


def draws_texts(window: StepWindow) -> bool:
    """What generates there does so a token at a time."""
    return any(_makes_tokens(one) for one in main_places(window) if one.feeds)


def grows_text(place: FrameShare) -> bool:
    """There a text is drawn for a look, a token at a time: each token is another shape."""
    return draws(place.evaluation) and _makes_tokens(place)


def draws(frame: str) -> bool:
    """By its name the function draws from a net."""
    return _is_named(frame, GENERATES)


def _makes_tokens(place: FrameShare) -> bool:
    return LIBRARY_GENERATES in place.frame or TOKENS.search(place.line) is not None


def _acts(place: FrameShare) -> bool:
    """In an environment: of a library's, or by the source; by names alone only where these can mean
    nothing else, or there are two of them and no source could be read."""
    if place.acts or path_of(place.frame).startswith(ENVIRONMENT_PACKAGES):
        return True
    apart, own = _functions(place)
    method = called_function(own)
    if method in VECTOR_METHODS or _is_named(apart, ACTS) or _is_named(own, ACTS):
        return True
    return place.acts is None and method in ENVIRONMENT_METHODS and _is_named(apart, ROLLOUT)


def _functions(place: FrameShare) -> tuple[str, str]:
    """The one that evaluates, and the innermost of the user's own."""
    return place.evaluation, own_frame(place) or ""


def _is_named(frame: str, names: re.Pattern[str]) -> bool:
    """The function is, or the one in which it is defined."""
    return any(names.fullmatch(one) for one in (function_of(frame), called_function(frame)))


@lru_cache(maxsize=4)
def evaluating_pauses(window: StepWindow) -> Pauses | None:
    """The long steps that samples show to be evaluations, or rollouts: they come in a rhythm, and
    hold about what samples show. Samples come in a few chunks of two seconds, which pauses of one
    second fill or miss (68 % for 42 %); the marks have every pause, whole. Whoever
    evaluates every 40 steps saves a checkpoint in the same ones.

    Of a rollout samples know no more than its source tells of its loop, less than all: there they
    may show as much as their interval allows (CleanRL's PPO on an H200: 24 % of the first 38 and 43
    % of 76, of pauses that hold 71 % of the time; 16 environments for four gave 3.2x a sample)."""
    seen = share_seen(window, evaluates)
    if seen.low < CONTRIBUTOR or any(row.evaluation_ns for row in window.all_recent):
        return None
    found = outliers(window, beside_named=True)
    if found is None or not found.is_regular or found.spacing_steps is None:
        return None
    behind = behind_ns(window)
    if behind is None:
        return None
    period_ns = found.each_ns + found.spacing_steps * found.step_ns
    mean = max(0.0, found.each_ns - behind) / period_ns
    acting = what_evaluates(window) != "evaluation"
    # Samples show the wait for the training as well.
    held = mean if acting else found.each_ns / period_ns
    most = seen.high if acting or _are_alone(window) else seen.mean
    if most < SAME_PAUSES * held or held < SAME_PAUSES * seen.mean:
        return None
    # Of what is in the pauses of a rollout nothing else is to go: they are as well known as marks.
    error = found.share.high - found.share.mean if acting else ENTER_LOW
    return replace(found, share=Share(mean, max(0.0, mean - error), min(1.0, mean + error)))


def _are_alone(window: StepWindow) -> bool:
    """Samples show nothing else between the phases that the long steps could hold: then few of them
    may have missed as much as their interval allows (generated run 2763, whose 38 samples met 24 %
    of what holds 49 % of the time; without it 2.06x). Without a loader the forward holds all."""
    return window.sees_loading and not within(main_places(window), OUTSIDE)


def behind_ns(window: StepWindow) -> float | None:
    """The most that the GPU was behind the host at a mark: an evaluation that reads a result waits
    for so much of the training first (a net on an H200 that is the limit: 10 steps of 57 ms in each
    such wait). None where that is not known."""
    if not window.gpu_present:
        return 0.0
    device = on_device(window)
    if device is None or device.abstains:
        return None
    lags = [
        lag or 0
        for row in device.rows
        for lag in (row.lag_start_ns, row.lag_data_ns, row.lag_forward_ns, row.lag_backward_ns)
    ]
    return float(max(lags))
