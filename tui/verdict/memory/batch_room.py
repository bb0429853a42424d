"""How large a batch the GPU's memory has room for."""

from dataclasses import dataclass
from math import floor

from ..format import mib, percent
from ..thresholds.gpu import MEMORY_FULL, MOST_TIMES_LARGER
from ..window import RunFacts


@dataclass(frozen=True, slots=True)
class BatchRoom:
    """The device's memory at the height of a step. Bytes."""

    kept: int
    """What stays from step to step: weights, optimizer state, gradients that are kept."""
    activations: int
    """What a step adds at its height: it grows with the batch."""
    limit: int

    @property
    def full(self) -> float:
        """Part of the memory that is taken at the height of a step, 0 to 1."""
        return (self.kept + self.activations) / self.limit

    @property
    def times_larger(self) -> int:
        """Whole times that the batch fits, short of memory that counts as full; a power of two."""
        if self.activations <= 0:
            return 1
        fits = (MEMORY_FULL * self.limit - self.kept) / self.activations
        return 1 << max(0, min(MOST_TIMES_LARGER, floor(fits)).bit_length() - 1)


def batch_room(window: RunFacts) -> BatchRoom | None:
    """None where the allocator's or the device's memory is unknown."""
    limit = window.gpu_memory_limit_bytes
    if not limit or not window.gpu_memory:
        return None
    newest = window.gpu_memory[-1]
    return BatchRoom(newest.allocated, max(0, newest.peak_allocated - newest.allocated), limit)


def larger_batch(window: RunFacts, why: str) -> str:
    """ "batch_size 12 → 96 (…): `why`", as far as the memory allows."""
    room = batch_room(window)
    size = window.loaders[0].batch_size if window.loaders else None
    if room is None:
        return f"a larger batch: {why}"
    if room.full >= MEMORY_FULL or room.times_larger < 2:
        return (
            f"a larger batch, {why}: the GPU's memory is {percent(room.full)} full, activation "
            "checkpointing (torch.utils.checkpoint) would make room"
        )
    times = room.times_larger
    then = mib(room.kept + times * room.activations)
    fits = f"{then} of {mib(room.limit)} of memory then"
    if size is None:
        return f"a batch {times} times as large ({fits}): {why}"
    larger = size * times
    return f"batch_size {size} → {larger // 8 * 8 or larger} ({fits}): {why}"


def to_eights(size: int) -> int:
    """The next multiple of 8: tensor cores work on tiles of it."""
    return -(-size // 8) * 8
