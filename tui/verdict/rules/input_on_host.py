"""Batches that are only copied, of a dataset that the GPU's memory would hold."""

from dataclasses import dataclass, replace
from typing import Final

from ..findings import Evidence
from ..forecast.gain import gain_without, gain_without_both
from ..forecast.interval import interval_of
from ..format import size, times
from ..loader import Feeding, training_loader
from ..thresholds import causes as limits
from ..window import StepWindow
from .input_pattern import Explained

ONLY_COPIED_BYTES_S: Final = 3e8
"""Bytes of its batches that a worker makes in a second, from which on it can hardly do more than
copy them. A core decodes JPEGs to some 100 MB/s of float32, and copies 5 GB/s and more; workers
that took rows of an array and collated them made 0.9 to 3 GB/s."""
FITS: Final = 0.5
"""Part of the GPU's memory, of what the process has not reserved, that a dataset may take."""

HALF: Final = 0.5
"""Part of what it gives back, from which on workers that stay come first."""


@dataclass(frozen=True, slots=True)
class _Dataset:
    """A training's dataset, as far as its batches show it."""

    whole_bytes: int
    """Of an epoch's batches."""
    room_bytes: int
    """That the GPU has left."""
    made_bytes_s: float
    """Of its batches, by one worker or by the training thread."""

    @property
    def fits(self) -> bool:
        return self.whole_bytes <= FITS * self.room_bytes

    @property
    def is_only_copied(self) -> bool:
        return self.made_bytes_s >= ONLY_COPIED_BYTES_S


def or_kept_on_gpu(window: StepWindow, feeding: Feeding, why: Explained) -> Explained:
    """The same, or that the dataset is best put on the GPU once, where that gives far more than
    what else explains the wait: no worker then makes a batch, hands it over and has it given back,
    and nothing is copied to the GPU (C-SWM, 59 MiB a batch: 5.0x on an H200, its workers were no
    limit; VQA's features: 4.4x, where more workers gave 2.2x)."""
    found = _dataset(window, feeding)
    if found is None or not (found.fits and found.is_only_copied):
        return why
    alone, kept = gain_without("input", window), gain_without_both("input", "h2d", window)
    if alone is None or kept is None:
        return why
    others = alone.speedup if why.forecast is None else why.forecast.speedup
    if others >= limits.MOST_OF_THE_GAIN * kept:
        return why
    whole = size(found.whole_bytes)
    advice = f"hold the dataset on the GPU and take batches there by index, about {times(kept)}: "
    advice += f"{whole} of {size(found.room_bytes)} that are free, if its samples stay the same"
    rate = f"{size(found.made_bytes_s)} a second"
    if why.sub == "epoch-start" and 1 - 1 / others >= HALF * (1 - 1 / kept):
        # One argument keeps the workers, and takes no memory.
        return replace(why, advice=(*why.advice[:1], f"or {advice}", *why.advice[1:]))
    text = f"batches are hardly more than copied ({rate}), and the dataset has {whole}"
    evidence = (Evidence(text, "hook", float(found.whole_bytes), "bytes"), *why.evidence)
    return replace(
        why,
        sub="on-host",
        evidence=evidence,
        advice=(advice, *why.advice),
        gain_known=True,
        forecast=interval_of("input", kept),
    )


def _dataset(window: StepWindow, feeding: Feeding) -> _Dataset | None:
    """None where the loader does not know its length, or nobody has seen a batch of it on the
    host, or what making one takes."""
    loader, memory = training_loader(window), window.gpu_memory
    limit = window.gpu_memory_limit_bytes
    if loader is None or not loader.batches or not loader.batch_bytes:
        return None
    if loader.batch_device != "cpu" or not memory or limit is None or not feeding.make_ns:
        return None
    return _Dataset(
        whole_bytes=loader.batches * loader.batch_bytes,
        room_bytes=max(0, limit - memory[-1].peak_reserved),
        made_bytes_s=1e9 * loader.batch_bytes / feeding.make_ns,
    )
