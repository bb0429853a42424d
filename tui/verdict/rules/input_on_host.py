"""Batches that are only copied, of a dataset that the GPU's memory would hold."""

from dataclasses import dataclass, replace
from typing import Final

from ..findings import Evidence
from ..forecast.gain import gain_on_device, gain_without
from ..forecast.interval import interval_of
from ..format import size, times
from ..loader import Feeding, evaluates_the_same, training_loader
from ..memory.trends import batch_room
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.hysteresis import CONTRIBUTOR, LEAST_LEFT
from ..window import StepWindow
from .input_pattern import Explained

ONLY_COPIED_BYTES_S: Final = 3e8
"""Bytes of its batches that a worker makes in a second, from which on it can hardly do more than
copy them: C-SWM's made 0.65 GB and VQA's 0.86 on an H200's host. A picture of 224 pixels that takes
5 ms to decode is 0.12 GB/s of float32."""
FITS: Final = 0.5
"""Part of the GPU's free memory that a dataset may take."""
LEAST_OF_EVALUATION: Final = 0.2
"""Of an evaluation, what stays at the least: no replay shows what it does beside reading."""
STAYING_FIRST: Final = 0.5
"""Of what the GPU's memory gives back, the part from which on workers that stay come first."""


@dataclass(frozen=True, slots=True)
class _Dataset:
    """A training's, as far as its batches show it. Bytes."""

    whole: int
    """Of an epoch's batches."""
    free: int
    """Of the GPU's memory at the height of a step."""
    made_s: float
    """Of its batches in a second, by one worker or by the training thread."""


@dataclass(frozen=True, slots=True)
class _Both:
    """The training's batches and an evaluation's."""

    speedup: float
    whole: int
    """Bytes of both."""


def or_kept_on_gpu(window: StepWindow, feeding: Feeding, why: Explained) -> Explained:
    """The same, or that the dataset is best put on the GPU once, where that gives far more than
    what else explains the wait: no worker then makes a batch, hands it over and has it given back,
    and nothing is copied to the GPU (C-SWM, 59 MiB a batch: 5.0x on an H200, its workers were no
    limit; VQA's features: 4.4x, where more workers gave 2.2x)."""
    found = _only_copied(window, feeding)
    if found is None:
        return why
    alone, without = gain_without("input", window), gain_on_device(window, "input", "h2d")
    if alone is None or without is None:
        return why
    kept = without.speedup
    others = alone.speedup if why.forecast is None else why.forecast.speedup
    if others >= limits.MOST_OF_THE_GAIN * kept:
        return why
    which, whole, likely = "dataset", size(found.whole), kept
    if (both := _evaluated_too(window, found, kept)) is not None:
        which, whole, likely = "dataset, and evaluation's,", size(both.whole), both.speedup
    advice = f"hold the {which} on the GPU and take batches there by index, about {times(likely)}: "
    advice += f"{whole} of {size(found.free)} that are free, if its samples stay the same"
    if why.sub == "epoch-start" and 1 - 1 / others >= STAYING_FIRST * (1 - 1 / kept):
        # One argument keeps the workers, and takes no memory.
        return replace(why, advice=(*why.advice[:1], f"or {advice}", *why.advice[1:]))
    text = f"batches are hardly more than copied ({size(found.made_s)} a second), and the dataset "
    text += f"has {whole}"
    evidence = (Evidence(text, "hook", float(found.whole), "bytes"), *why.evidence)
    alone_in_training, forecast = interval_of("input", kept), interval_of("input", likely)
    return replace(
        why,
        sub="on-host",
        evidence=evidence,
        advice=(advice, *why.advice),
        gain_known=True,
        forecast=replace(forecast, low=min(forecast.low, alone_in_training.low)),
    )


def _evaluated_too(window: StepWindow, found: _Dataset, kept: float) -> _Both | None:
    """What holding the batches of evaluations on the GPU too gives together, where `kept` is for
    those of the training alone: as large a part of them goes, of reading for less work on the net
    (DiffPool, 24 % in evaluation: 3.0x without, 7.9x measured and 7.2x so computed on an H200).
    None where that is hardly more, or no loader of an evaluation was seen to give the same kind of
    samples, of which as many fit."""
    own, loader = training_loader(window), evaluates_the_same(window)
    evaluated_ns = sum(row.evaluation_ns for row in window.steps)
    part = evaluated_ns / max(1, spent(window.steps).wall_ns)
    if part < CONTRIBUTOR or own is None or loader is None or not (own.batches and loader.batches):
        return None
    held_out = (loader.batches * (loader.batch_size or 0)) / (own.batches * (own.batch_size or 1))
    whole = round((1 + held_out) * found.whole)
    if whole > FITS * found.free:
        return None
    left = 1.0 / kept
    stays = max(LEAST_OF_EVALUATION, (left - part) / (1.0 - part))
    return _Both(1.0 / max(LEAST_LEFT, left - part * (1.0 - stays)), whole)


def _only_copied(window: StepWindow, feeding: Feeding) -> _Dataset | None:
    """One that fits and whose batches are. None too where the loader does not know its length, or
    nobody has seen a batch of it on the host, or what making one takes."""
    loader, room = training_loader(window), batch_room(window)
    if loader is None or not loader.batches or not loader.batch_bytes:
        return None
    if loader.batch_device != "cpu" or room is None or not feeding.make_ns:
        return None
    whole, made_s = loader.batches * loader.batch_bytes, 1e9 * loader.batch_bytes / feeding.make_ns
    free = room.limit - room.kept - room.activations
    if whole > FITS * free or made_s < ONLY_COPIED_BYTES_S:
        return None
    return _Dataset(whole, free, made_s)
