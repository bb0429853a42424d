"""The loaders of a run, as the marks describe them."""

from collections import deque
from typing import Final

import msgspec
from msgspec.structs import replace

from ...messages import BatchSeen, Loader
from ...steps import Padding

MOST_LOADERS: Final = 32
"""A script may make new ones for ever: the oldest are forgotten."""
SIZES_KEPT: Final = 16
SIZES_VARY: Final = 9
SIZES_APART: Final = 0.03
"""Of the last batches that were looked at more than half have a size of their own: no graph can be
kept for each. Sizes that are nearly alike are one: a few boxes more, labels of another length.
Texts padded to multiples of 64 have eight up to 512."""

Description = tuple[Loader, bool]
"""A loader, and whether gradients are on where its iterator is first fetched from."""


class DescribedLoaders:
    """Loaders by key, with how often each was iterated and whether it serves evaluation."""

    def __init__(self) -> None:
        self._loaders: dict[int, Loader] = {}
        self._key_of: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        """Batches that an iterator has given since its first, which was seen."""
        self._padding: list[Padding] = []
        self._sizes: dict[int, deque[int]] = {}
        self._training: set[int] = set()
        """Keys of those that the training fetches from with gradients off."""
        self._counted: set[int] = set()
        """Keys of those whose length is what the last whole iteration had."""

    def iterated(self, iterator: int, described: Loader) -> None:
        """An iterator of a loader is fetched from for the first time."""
        key = described.key
        before = self._loaders.pop(key, None)
        if len(self._loaders) >= MOST_LOADERS:
            oldest = next(iter(self._loaders))
            self._loaders.pop(oldest)
            self._sizes.pop(oldest, None)
            self._training.discard(oldest)
            self._counted.discard(oldest)
        if before is not None and before.batch_size != described.batch_size:
            self._sizes.pop(key, None)
            before = replace(before, batch_bytes=described.batch_bytes, varies=described.varies)
        if before is not None and before.dataset != described.dataset:
            self._sizes.pop(key, None)  # another one, at the address of one that is gone
            self._training.discard(key)
            self._counted.discard(key)
        elif before is not None:
            described = replace(
                described,
                batches=described.batches or before.batches,
                iterations=max(described.iterations, before.iterations + 1),
                evaluation=before.evaluation,
                trains=before.trains,
                batch_bytes=before.batch_bytes,
                batch_tensors=before.batch_tensors,
                batch_device=before.batch_device,
                pinned=before.pinned,
                varies=before.varies,
            )
        self._loaders[key] = described
        if len(self._key_of) >= 64:
            self._key_of.clear()
            self._taken.clear()
        self._key_of[iterator] = key
        self._taken[iterator] = 0

    def fetched(self, iterator: int, count: int = 1) -> None:
        """So many batches of an iterator came."""
        if iterator in self._taken:
            self._taken[iterator] += count

    def ended(self, iterator: int) -> None:
        """An iterator was exhausted: the length of a loader that nothing else tells is known."""
        taken, loader = self._taken.pop(iterator, 0), self._loader_of(iterator)
        if loader is None or not taken:
            return
        if loader.batches is None or loader.key in self._counted:
            self._counted.add(loader.key)
            self._loaders[loader.key] = replace(loader, batches=taken)

    def missed(self) -> None:
        """Marks were lost, of fetches perhaps."""
        self._taken.clear()

    def batch_size(self, iterator: int) -> int | None:
        """The configured batch size of an iterator's loader."""
        loader = self._loader_of(iterator)
        return loader.batch_size if loader is not None else None

    def samples_in(self, iterator: int, batch: BatchSeen) -> int | None:
        """Samples of a batch of an iterator. Where the loader puts several together they are no
        more than that, and as many where a list in it is as long: pictures of their own sizes lie
        in one, and the first dimension of each is its channels."""
        size = self.batch_size(iterator)
        if size is None or batch.samples is None:
            return batch.samples
        if size in batch.lengths:
            return size
        return batch.samples if size == 1 else min(size, batch.samples)

    def starts_workers(self, iterator: int) -> bool:
        """Its loader is known, and starts workers for each of its iterators."""
        loader = self._loader_of(iterator)
        return loader is not None and loader.restarts

    def serves(self, iterator: int, evaluation: bool) -> None:
        """An iterator turned out to feed an evaluation, or training."""
        key = self._key_of.get(iterator, 0)
        loader = self._loaders.get(key)
        if loader is None:
            return
        if loader.evaluation != evaluation or not (evaluation or loader.trains):
            trains = loader.trains or not evaluation
            self._loaders[key] = replace(loader, evaluation=evaluation, trains=trains)

    def goes_on(self, iterator: int) -> None:
        """It is fetched from with gradients off, and was before the last backward."""
        if (key := self._key_of.get(iterator, 0)) in self._loaders:
            self._training.add(key)

    def feeds_training(self, iterator: int) -> bool:
        """An iterator of its loader goes on over backwards with gradients off, as a teacher's does:
        then another one is no evaluation's for that."""
        return self._key_of.get(iterator, 0) in self._training

    def seen(self, iterator: int, t_ns: int, batch: BatchSeen) -> None:
        """A batch of an iterator was looked at. Its size is kept when it changes by a quarter."""
        key = self._key_of.get(iterator, 0)
        if (mask := batch.padding) is not None:
            self._padding.append(Padding(t_ns, key, *msgspec.structs.astuple(mask)))
        loader = self._loaders.get(key)
        if loader is None:
            return
        varies = self._varies(key, batch.bytes)
        if varies is not None and varies is not loader.varies:
            loader = self._loaders[key] = replace(loader, varies=varies)
        same = (loader.batch_device, loader.pinned) == (batch.device, batch.pinned)
        if same and abs(batch.bytes - (loader.batch_bytes or 0)) * 4 <= batch.bytes:
            return
        self._loaders[key] = replace(
            loader,
            batch_bytes=batch.bytes,
            batch_tensors=batch.tensors,
            batch_device=batch.device,
            pinned=batch.pinned,
        )

    def _loader_of(self, iterator: int) -> Loader | None:
        return self._loaders.get(self._key_of.get(iterator, 0))

    def _varies(self, key: int, size: int) -> bool | None:
        """As in `Loader`."""
        sizes = self._sizes.setdefault(key, deque(maxlen=SIZES_KEPT))
        sizes.append(size)
        different, last = 0, 0.0
        for one in sorted(sizes):
            if not different or one > last * (1 + SIZES_APART):
                different, last = different + 1, one
        if different >= SIZES_VARY:
            return True
        return False if len(sizes) == SIZES_KEPT else None

    def take_padding(self) -> list[Padding]:
        """What masks have shown since the last call."""
        taken, self._padding = self._padding, []
        return taken

    def all(self) -> list[Loader]:
        """Every loader known, the one described longest ago first."""
        return list(self._loaders.values())
