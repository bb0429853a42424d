"""Evaluations, and rollouts, that no mark shows: by the samples, and by the long steps that these
show them to be."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from .code_places import (
    ROLLOUT,
    evaluates,
    main_places,
    share_held,
    share_seen,
    share_where,
)
from .gpu_clock import on_device
from .pauses import Pauses, outliers
from .place_names import called_function, function_of, own_frame, path_of
from .stack_samples import FrameShare
from .statistics import Share
from .thresholds.causes import SAME_PAUSES
from .thresholds.hysteresis import CONTRIBUTOR, ENTER_LOW
from .thresholds.samples import ENVIRONMENT_METHODS, ENVIRONMENT_PACKAGES
from .window import StepWindow

GENERATES: Final = re.compile(r"_?generate(_(completions?|responses?|texts?|tokens?|batch))?")
"""Functions that sample texts, a token at a time, by their whole names (`generate_images`, and what
a GAN draws, is an evaluation)…"""
TOKENS: Final = re.compile(
    r"token|\beos\b|logits|multinomial|past_key|kv_?cache|\bcache\b|idx_(next|cond)|top_[kp]\b"
)
"""…and by a line within them; a net of pictures generates too."""
LIBRARY_GENERATES: Final = "transformers/generation/"
ACTING: Final = 0.1
"""Of the samples of an evaluation those in an environment, or in a function with such a name: most
of a rollout may be the net that chooses the actions. Of a held-out set none are."""
LITTLE_BEHIND: Final = 0.1
"""Part of a step by which a GPU may be behind without hiding what the host does between two: 0.003
to 0.07 of it in nanoGPT and PPO, 0.6 to 0.9 in nets that are the limit themselves (H200)."""


def is_rollout(window: StepWindow) -> bool:
    """What evaluates there acts in an environment, or generates texts to be trained on."""
    places = [place for place in main_places(window) if evaluates(place)]
    acting = share_where(places, _acts) > ACTING * share_where(places, lambda _: True)
    return acting or bool(_generating(places))


def is_generation(window: StepWindow) -> bool:
    """What evaluates there is a net that samples texts, a token at a time, and hardly any of it an
    environment."""
    places = [place for place in main_places(window) if evaluates(place)]
    whole = share_where(places, lambda _: True)
    if share_where(places, _in_environment) > ACTING * whole:
        return False
    if any(LIBRARY_GENERATES in place.frame for place in places):
        return True
    return any(
        GENERATES.fullmatch(called_function(own_frame(one) or "")) and TOKENS.search(one.line)
        for one in _generating(places)
    )


def _generating(places: Sequence[FrameShare]) -> list[FrameShare]:
    """Those within functions with such a name, where they hold most."""
    named = [one for one in places if GENERATES.fullmatch(called_function(one.evaluation))]
    most = share_held(named) > share_where(places, lambda _: True) / 2
    return named if most else []


def _acts(place: FrameShare) -> bool:
    """In an environment: because a function is one of gym's interface, or by the name of one of
    the user's own, or of the function that is apart from the training. What a library names so has
    other reasons (PyTorch Geometric's convolutions `collect` what they send)."""
    named = (place.evaluation, own_frame(place) or "")
    return _in_environment(place) or any(ROLLOUT.search(function_of(one)) for one in named)


def _in_environment(place: FrameShare) -> bool:
    if called_function(place.caller or place.frame) in ENVIRONMENT_METHODS:
        return True
    return path_of(place.frame).startswith(ENVIRONMENT_PACKAGES)


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
