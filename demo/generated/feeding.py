"""Where batches come from, and what the slow parts of a run do while they are slow."""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from generated.families import Batch, scale_of
from generated.spec import Spec, Work

ENDLESS: Final = 1_000_000
"""Batches in an epoch that never ends."""
BURST_EVERY: Final = 10
"""One batch of so many is slow."""
TEXT: Final = "A loop is slow for a reason, and it is seldom the one that was blamed. "
WORD: Final = re.compile(r"\w+|[^\w\s]")
CALIBRATED_ROUNDS: Final = 40


@dataclass(frozen=True)
class Chore:
    """Work on the host that takes a known time."""

    work: Work
    rounds: int
    seconds: float
    """Of a whole sleep."""

    def __call__(self) -> None:
        if self.work == "sleep":
            if self.seconds:
                time.sleep(self.seconds)
        elif self.work == "python":
            tokenize(self.rounds)
        else:
            augment(self.rounds)


def tokenize(rounds: int) -> int:
    """Plain Python over text; returns the number of tokens."""
    vocabulary: dict[str, int] = {}
    for _ in range(rounds):
        for word in WORD.findall(TEXT):
            vocabulary.setdefault(word.lower(), len(vocabulary))
    return len(vocabulary)


def augment(rounds: int) -> float:
    """NumPy over a small picture, as an augmentation does; returns its mean."""
    picture = numpy.linspace(0.0, 1.0, 3 * 48 * 48, dtype=numpy.float32).reshape(3, 48, 48)
    for turn in range(rounds):
        picture = numpy.roll(picture[:, :, ::-1], turn % 5, axis=2)
        picture = numpy.clip(picture * 1.01 - 0.005, 0.0, 1.0)
    return float(picture.mean())


def seconds_of_a_round(work: Callable[[int], object]) -> float:
    """What one round of it takes: the least of five, so that a busy neighbour does not count."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        work(CALIBRATED_ROUNDS)
        took.append((time.perf_counter() - began) / CALIBRATED_ROUNDS)
    return min(took)


@dataclass(frozen=True)
class Pace:
    """Seconds of a round of each kind of work, on this machine."""

    python_s: float
    arrays_s: float

    def chore(self, work: Work, seconds: float) -> Chore:
        """Work that takes so long on an idle core."""
        round_s = self.python_s if work == "python" else self.arrays_s
        return Chore(work, max(1, round(seconds / round_s)), seconds)


def measured_pace() -> Pace:
    """Of this machine."""
    return Pace(seconds_of_a_round(tokenize), seconds_of_a_round(augment))


class Samples(Dataset[Batch]):
    """Samples, each with a chore; those of a slow batch have a longer one."""

    def __init__(self, pool: Batch, batch: int, chore: Chore | None, burst: Chore | None) -> None:
        self.inputs, self.targets = pool
        self.batch = batch
        self.chore = chore
        self.burst = burst

    def __len__(self) -> int:
        return ENDLESS * self.batch

    def __getitem__(self, index: int) -> Batch:
        if self.chore is not None:
            self.chore()
        if self.burst is not None and index // self.batch % BURST_EVERY == 0:
            self.burst()
        at = index % len(self.inputs)
        return self.inputs[at], self.targets[at]


class Batches(Dataset[Batch]):
    """Whole batches, each with a chore."""

    def __init__(self, pool: Batch, batch: int, chore: Chore | None, burst: Chore | None) -> None:
        self.inputs = pool[0].split(batch)
        self.targets = pool[1].split(batch)
        self.chore = chore
        self.burst = burst

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Batch:
        if self.chore is not None:
            self.chore()
        if self.burst is not None and index % BURST_EVERY == 0:
            self.burst()
        at = index % len(self.inputs)
        return self.inputs[at].clone(), self.targets[at].clone()


class Epoch(Dataset[Batch]):
    """The first samples, or batches, of a dataset: an epoch that is soon over."""

    def __init__(self, dataset: Samples | Batches, length: int) -> None:
        self.dataset = dataset
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Batch:
        return self.dataset[index]


def loader_of(
    spec: Spec,
    pool: Batch,
    chore: Chore | None = None,
    burst: Chore | None = None,
    epoch: int | None = None,
) -> "DataLoader[Batch]":
    """The loader of a run; `chore` and `burst` are for a batch, and shared out among its samples.

    With `epoch` it ends after so many batches and starts its workers anew each time.
    """
    batch = scale_of(spec).batch
    each = 1 if spec.whole_batches else batch
    kind = Batches if spec.whole_batches else Samples
    dataset = kind(pool, batch, _part(chore, each), _part(burst, each))
    workers = spec.workers + spec.more_workers
    return DataLoader(
        dataset if epoch is None else Epoch(dataset, epoch * each),
        batch_size=None if spec.whole_batches else batch,
        num_workers=workers,
        pin_memory=spec.pinned,
        persistent_workers=workers > 0 and epoch is None,
    )


def _part(chore: Chore | None, parts: int) -> Chore | None:
    if chore is None:
        return None
    return Chore(chore.work, max(1, round(chore.rounds / parts)), chore.seconds / parts)


def ready_batches(spec: Spec, pool: Batch) -> Iterator[Batch]:
    """Batches that lie ready in host memory, for ever."""
    batch = scale_of(spec).batch
    pairs = list(zip(pool[0].split(batch), pool[1].split(batch), strict=True))
    if spec.pinned:
        pairs = [(inputs.pin_memory(), targets.pin_memory()) for inputs, targets in pairs]
    return itertools.cycle(pairs)


def seconds_to_restart(spec: Spec, pool: Batch) -> float:
    """What it takes to start the loader's workers, get a batch and end them."""
    began = time.perf_counter()
    for _batch in loader_of(spec, pool, epoch=1):
        pass
    return time.perf_counter() - began


def lengths_of(spec: Spec) -> tuple[int, ...]:
    """Lengths of sequences in a run where they differ."""
    longest = scale_of(spec).length
    return tuple(longest * part // 8 for part in range(3, 9))


def cropped(batch: Batch, length: int) -> Batch:
    """Its first tokens."""
    return batch[0][:, :length].contiguous(), batch[1][:, :length].contiguous()


def to_device(batch: Batch, spec: Spec) -> Batch:
    """A copy on the device."""
    inputs, targets = batch
    device = torch.device(spec.device)
    return (
        inputs.to(device, non_blocking=spec.pinned),
        targets.to(device, non_blocking=spec.pinned),
    )
