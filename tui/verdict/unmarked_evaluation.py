"""Evaluations, and rollouts, that no mark shows: by the samples, and by the long steps that these
show them to be."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from .code_places import ROLLOUT, evaluates, main_places, share_seen, share_where
from .gpu_clock import on_device
from .pauses import Pauses, outliers
from .place_names import function_of, own_frame
from .stack_samples import FrameShare
from .statistics import Share
from .thresholds.causes import SAME_PAUSES
from .thresholds.hysteresis import CONTRIBUTOR, ENTER_LOW
from .window import StepWindow

ENVIRONMENTS: Final = ("step", "reset", "step_async", "step_wait", "reset_async", "reset_wait")
"""Methods of gym's environments, and of many at a time. An optimizer's are no evaluation."""
PACKAGES: Final = ("gym/", "gymnasium/", "ale_py/", "envpool/", "pettingzoo/", "procgen/")
GENERATES: Final = re.compile(r"generate")
"""In the name of a function that samples texts, a token at a time."""
ACTING: Final = 0.1
"""Of the samples of an evaluation those in an environment, or in a function with such a name: most
of a rollout may be the net that chooses the actions. Of a held-out set none are."""
LITTLE_BEHIND: Final = 0.1
"""Part of a step by which a GPU may be behind without hiding what the host does between two: 0.003
to 0.07 of it in nanoGPT and PPO, 0.6 to 0.9 in nets that are the limit themselves (H200)."""


def is_rollout(window: StepWindow) -> bool:
    """What evaluates there acts in an environment."""
    places = [place for place in main_places(window) if evaluates(place)]
    return share_where(places, _acts) > ACTING * share_where(places, lambda _: True)


def is_generation(window: StepWindow) -> bool:
    """What evaluates there is a net that generates, a token at a time, and no environment is at
    work beside it."""
    places = [place for place in main_places(window) if evaluates(place)]
    whole = share_where(places, lambda _: True)
    named = share_where(places, lambda place: _named(place, GENERATES))
    return named > whole / 2 and not any(map(_in_environment, places))


def _acts(place: FrameShare) -> bool:
    """In an environment: because a function is one of gym's interface, or by the name of one of
    the user's own, or of the function that is apart from the training. What a library names so has
    other reasons (PyTorch Geometric's convolutions `collect` what they send)."""
    return _in_environment(place) or _named(place, ROLLOUT)


def _in_environment(place: FrameShare) -> bool:
    """By the function that was called apart from the training too: a wrapper's, around others."""
    called = {function_of(one) for one in (place.caller or place.frame, place.evaluation)}
    if not called.isdisjoint(ENVIRONMENTS):
        return True
    return place.frame.partition(" (")[2].startswith(PACKAGES)


def _named(place: FrameShare, what: re.Pattern[str]) -> bool:
    named = (place.evaluation, own_frame(place) or "")
    return any(what.search(function_of(frame)) for frame in named)


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
    acting = is_rollout(window)
    most = seen.high if acting else seen.mean
    if most < SAME_PAUSES * mean or mean < SAME_PAUSES * seen.mean:
        return None
    # Of what is in the pauses of a rollout nothing else is to go: they are as well known as marks.
    error = found.share.high - found.share.mean if acting else ENTER_LOW
    return replace(found, share=Share(mean, max(0.0, mean - error), min(1.0, mean + error)))


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
