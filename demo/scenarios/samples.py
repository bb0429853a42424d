"""Data made of numbers: pictures and token sequences that cost nothing to read.

A scenario whose cause is not its data takes them from here, so that nothing else is in the way.
"""

from collections.abc import Iterator

import torch
from torch.utils.data import IterableDataset

KEPT = 4
"""Batches that `ReadyBatches` keeps and hands out in turn."""


class ReadyBatches(IterableDataset[tuple[torch.Tensor, ...]]):
    """Batches that lie ready in memory: a fetch only hands one over.

    For a DataLoader with `batch_size=None` and no workers.
    """

    def __init__(self, batches: list[tuple[torch.Tensor, ...]], length: int = 1_000_000) -> None:
        self.batches = batches
        self.length = length
        """Batches in an epoch."""

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        for number in range(self.length):
            yield self.batches[number % len(self.batches)]


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
