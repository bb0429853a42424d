"""Data made of numbers: pictures and token sequences that cost nothing to read, or only a wait.

A scenario whose cause is not its data takes them from here, so that nothing else is in the way.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from machine import ON_GPU
from torch.utils.data import Dataset, IterableDataset

KEPT = 4
"""Batches that `ReadyBatches` keeps and hands out in turn."""


class ReadyBatches(IterableDataset[tuple[torch.Tensor, ...]]):
    """Batches that lie ready in memory: a fetch only hands one over.

    For a DataLoader with `batch_size=None` and no workers.
    """

    def __init__(
        self, batches: Sequence[tuple[torch.Tensor, ...]], length: int = 1_000_000
    ) -> None:
        self.batches = batches
        self.length = length
        """Batches in an epoch."""

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        for number in range(self.length):
            yield self.batches[number % len(self.batches)]


class SlowBatches(Dataset[tuple[torch.Tensor, ...]]):
    """Whole batches, each after a wait: for storage, or for another machine.

    For a DataLoader with `batch_size=None`.
    """

    def __init__(
        self,
        batches: Sequence[tuple[torch.Tensor, ...]],
        wait_s: float,
        slower_from: int = 0,
        slower_s: float = 0.0,
    ) -> None:
        self.batches = batches
        self.wait_s = wait_s
        self.slower_from = slower_from
        self.slower_s = slower_s
        """The wait for each batch from number `slower_from`; 0: all are alike."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        wait_s = self.wait_s
        if self.slower_s and index >= self.slower_from:
            wait_s = self.slower_s
        if wait_s:
            time.sleep(wait_s)
        return self.batches[index % len(self.batches)]


def seconds_of(work: Callable[[], object], times: int = 10) -> float:
    """What one call of it takes, GPU and all, so that a wait can be made a share of it."""
    for _ in range(3):
        work()
    if ON_GPU:
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        work()
    if ON_GPU:
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / times


def pictures(
    batch: int, side: int, classes: int = 10, device: torch.device | str = "cpu"
) -> list[tuple[torch.Tensor, ...]]:
    """Batches of float pictures [batch, 3, side, side] and their classes [batch]."""
    return [
        (
            torch.randn(batch, 3, side, side, device=device),
            torch.randint(classes, (batch,), device=device),
        )
        for _ in range(KEPT)
    ]


def vectors(
    batch: int, width: int, classes: int = 10, device: torch.device | str = "cpu"
) -> list[tuple[torch.Tensor, ...]]:
    """Batches of float vectors [batch, width] and their classes [batch]."""
    return [
        (
            torch.randn(batch, width, device=device),
            torch.randint(classes, (batch,), device=device),
        )
        for _ in range(KEPT)
    ]


def tokens(
    batch: int, length: int, vocabulary: int, device: torch.device | str = "cpu"
) -> list[tuple[torch.Tensor, ...]]:
    """Batches of token numbers [batch, length + 1]: the last one is only to be guessed."""
    return [(torch.randint(vocabulary, (batch, length + 1), device=device),) for _ in range(KEPT)]


def texts(
    count: int, longest: int, vocabulary: int, seed: int = 0
) -> list[tuple[torch.Tensor, int]]:
    """Token numbers of texts as they come, and the class of each: half of them are shorter than an
    eighth of the longest (log-normal lengths, as those of questions)."""
    drawn = torch.Generator().manual_seed(seed)
    lengths = torch.empty(count).log_normal_(math.log(longest / 8), 0.6, generator=drawn)
    return [
        (
            torch.randint(1, vocabulary, (min(longest, max(4, int(length))),), generator=drawn),
            int(torch.randint(2, (1,), generator=drawn)),
        )
        for length in lengths
    ]


def padded(some: Sequence[tuple[torch.Tensor, int]], longest: int = 0) -> dict[str, torch.Tensor]:
    """A batch of texts, with 0 up to the longest of them, or to `longest`; on a GPU to a multiple
    of 64, for attention's kernels are planned anew for each new length."""
    length = longest or max(len(text) for text, _ in some)
    if ON_GPU:
        length = -(-length // 64) * 64
    ids = torch.zeros(len(some), length, dtype=torch.int64)
    for row, (text, _) in zip(ids, some, strict=True):
        row[: len(text)] = text
    labels = torch.tensor([label for _, label in some])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}
