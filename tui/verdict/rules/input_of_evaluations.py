"""Evaluations wait for batches that are made as the training's are: cheaper ones serve both."""

from dataclasses import replace
from typing import Final

from ..cycles import known_evaluations
from ..forecast.gain import Gain
from ..loader import Feeding, evaluates_the_same, training_loader
from ..pauses import evaluation_data_part
from ..scoring import speedup_of
from ..statistics import Share, times
from ..thresholds.causes import MOST_OF_THE_GAIN
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .input_pattern import Explained

OF_ITEMS: Final = frozenset({"serial", "workers", "cpu-bound"})
"""Why the training waits, where it is what a batch costs to make."""


def waits_of_evaluations(window: StepWindow, why: Explained) -> Share | None:
    """Part of the run's time that evaluations wait for batches of the same kind of dataset, made as
    the training's are, by workers or by the training thread; None where that is hardly any. Behind
    a wait of the host's a GPU may still be at work: then the least is nothing."""
    own, loader, found = training_loader(window), evaluates_the_same(window), None
    if own is not None and loader is not None and why.sub in OF_ITEMS:
        made_alike = bool(own.num_workers) == bool(loader.num_workers)
        found = known_evaluations(window) if made_alike else None
    if found is None:
        return None
    waits = times(found.share, evaluation_data_part(window))
    if waits.mean < CONTRIBUTOR:
        return None
    return replace(waits, low=0.0) if window.gpu_present else waits


def with_evaluations(gain: Gain, waits: Share) -> Gain:
    """What no wait for batches gives, where a replay knows of the training's alone."""
    return replace(gain, speedup=speedup_of(1.0 - 1.0 / gain.speedup + waits.mean))


def cheaper_first(feeding: Feeding, why: Explained, speedup: float) -> Explained:
    """The same, with cheaper batches first where `speedup` by them is far more than what other
    workers for the training's give. Batches that wait for something are hidden by workers alone."""
    forecast = why.forecast
    if forecast is None or feeding.sleeps or forecast.speedup >= MOST_OF_THE_GAIN * speedup:
        return why
    more, less, *rest = why.advice
    return replace(why, advice=(less, more, *rest), forecast=None)
