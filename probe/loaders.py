"""What is looked at in a loader: its configuration once an epoch, its queue, a batch now and then.

Everything read here is private to torch and may be missing: then it is None, and nobody guesses.
"""

import itertools
import sys
from collections.abc import Mapping
from typing import Any, Final

LOOK_EVERY: Final = 61
"""A batch is looked at when the number of its mark divides by this: prime, so that loops with any
number of marks a step come round to it. Batch sizes change rarely."""
KNOWN_ITERATORS: Final = 64
"""Iterators remembered as described; beyond that all are described again, which is harmless."""

LoaderRow = tuple[
    int, str, int | None, int | None, bool, bool, int | None, int | None, tuple[int, ...], str
]
"""key, kind, workers, prefetch factor, pin memory, persistent, batch size, batches, pids, dataset:
the first fields of `messages.Loader`."""

Description = tuple[LoaderRow, bool]
"""A loader, and whether gradients are on where its iterator is first fetched from."""


class LoaderWatch:
    """Which iterators have been described. Keeps identities only, never the objects."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        """Iterators described since they were made or reset."""

    def restarted(self, iterator: Any) -> int:
        """An iterator begins (again): describe it before its next fetch. Returns its identity."""
        self.known.discard(id(iterator))
        return id(iterator)

    def describe(self, iterator: Any) -> Description:
        """The configuration of an iterator's loader, for a LOADER mark."""
        if len(self.known) >= KNOWN_ITERATORS:
            self.known.clear()
        self.known.add(id(iterator))
        return describe_iterator(iterator), bool(sys.modules["torch"].is_grad_enabled())


def describe_iterator(iterator: Any) -> LoaderRow:
    """The configuration that an iterator of torch's DataLoader carries."""
    sampler = getattr(iterator, "_index_sampler", None)
    try:
        batches: int | None = len(sampler)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        batches = None  # an iterable dataset, or a sampler of the user's without a length
    dataset = getattr(iterator, "_dataset", None)
    workers = getattr(iterator, "_workers", ())
    return (
        id(sampler),
        type(iterator).__name__,
        getattr(iterator, "_num_workers", None),
        getattr(iterator, "_prefetch_factor", None),
        bool(getattr(iterator, "_pin_memory", False)),
        bool(getattr(iterator, "_persistent_workers", False)),
        getattr(sampler, "batch_size", None),
        batches,
        tuple(worker.pid for worker in workers),
        type(dataset).__name__,
    )


def ready_batches(iterator: Any) -> int | None:
    """Batches that the training thread could take without waiting; None without workers.

    `mp.Queue.qsize` is not there on macOS; `empty()` would cost 5 us (hooks.md 1.3).
    """
    tasks = getattr(iterator, "_task_info", None)
    if tasks is None:
        return None
    try:
        waiting: int = iterator._data_queue.qsize()
    except (NotImplementedError, AttributeError):
        return None
    return waiting + sum(len(task) == 2 for task in tasks.values())


def leading_dimension(batch: Any, depth: int = 3) -> int | None:
    """The first dimension of the first tensor in a batch; None where there is none near by.

    Only tensors and plain containers are looked into: an attribute of a user's class could do
    anything.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(batch, torch.Tensor):
        return int(batch.shape[0]) if batch.dim() else None
    if depth == 0:
        return None
    if isinstance(batch, Mapping):
        items = iter(batch.values())
    elif isinstance(batch, (tuple, list)):
        items = iter(batch)
    else:
        return None
    for item in itertools.islice(items, 4):
        if (found := leading_dimension(item, depth - 1)) is not None:
            return found
    return None
