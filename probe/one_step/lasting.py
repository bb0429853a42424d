"""Tensors of a traced step by the memory that they lie in, and which of them were there before it
and have not changed since the last step that was traced."""

import ctypes
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from types import CodeType
from typing import Any, Final
from weakref import ref

from .operators import Operator

MOST_LEAVES: Final = 4_096
LARGE_MATRIX: Final = 1 << 20
"""Elements of a matrix whose zeros are counted…"""
SAMPLED: Final = 64
"""…in so many of its rows."""
WHOLE_BYTES: Final = 32 << 20
"""Of a tensor on the host, which others may write into: so much is read whole to tell whether it
has changed since the last step that was traced, 1 ms for each MB; of a larger one some pieces."""
PIECES: Final = 4_096
PIECE_BYTES: Final = 256
FEW: Final = 64
"""Pieces that tell whether it has changed within the step: a new batch has nothing of the old."""
MOST_READ_BYTES: Final = 128 << 20
"""Of all in one step."""

Leaf = tuple[Any, int, int, int, int, int]
"""Weak reference, version, number, storage; checksums of the whole and of a few pieces."""
Fields = tuple[int, Any, int, bool, bool]
"""Of a `Value`: the collector of garbage soon leaves a plain tuple of numbers alone, which counts
where a step has thousands."""


class Code(IntEnum):
    """Whose a function is."""

    LIBRARYS = 0
    PROGRAMS = 1
    CLOSED = 2
    """A layer of PyTorch's that holds others."""


class Known:
    """What is remembered from one traced step to the next."""

    def __init__(self) -> None:
        self.code: dict[CodeType, Code] = {}
        self.operators: dict[Any, Operator] = {}
        self.leaves: dict[int, Leaf] = {}
        """By a tensor's identity."""
        self.filled: dict[int, float] = {}
        """As `Step` has it."""
        self.views: dict[Any, tuple[Any, int]] = {}
        """Each `Value.view` that was seen, once, with the bytes of its elements."""
        self.ids: dict[Any, int] = {}
        """Numbers of what was computed, by how (`needless.steady_of`)."""
        self._number = 0

    def next(self) -> int:
        """A number that nothing has had."""
        self._number += 1
        return self._number


class Leaves:
    """Of one step."""

    def __init__(self, known: Known, torch: Any) -> None:
        self.written: set[int] = set()
        """Storages that some operation has changed."""
        self._known = known
        self._torch = torch
        self._storages: dict[int, tuple[int, Callable[[], bool]]] = {}
        """Number of each storage by its address, and whether it is freed: that of a tensor that
        only a backward keeps is not, and an address is not given anew while it is asked."""
        self._fresh: set[int] = set()
        """Numbers that were given in this step."""
        self._there: set[int] = set()
        """Addresses of those that were there before the step."""
        self._lasting: dict[int, int] = {}
        """Identities of tensors, by the numbers of their storages."""
        self._counts: dict[int, tuple[Any, int]] = {}
        """Of large matrices that last: how many numbers are not zero, of so many."""
        self._read_bytes = 0

    def read(self, tensor: Any) -> Fields:
        """An operand."""
        storage = self._address(tensor)
        number = self._alive(storage)
        if number is None or (storage in self._there and self._has_changed(tensor, number)):
            number = self._leaf(tensor, storage)
            self._there.add(storage)
        self._keep(storage, number, tensor)
        return self._value(tensor, number)

    def made(self, tensor: Any, held: set[int]) -> Fields:
        """A result, of operands in the storages `held`."""
        storage = self._address(tensor)
        number = self._alive(storage)
        if number is None or number not in held:
            number = self._known.next()
            self._there.discard(storage)
            self._storages.pop(storage, None)
        self._keep(storage, number, tensor)
        return self._value(tensor, number)

    def forget_leaves(self) -> None:
        """An optimizer may have changed what was there before."""
        for storage in self._there:
            self._storages.pop(storage, None)
        self._there.clear()

    def count(self, tensors: list[Any], reads: tuple[Fields, ...]) -> None:
        """Zeros in some rows of large matrices that last, of each once. On a device a copy into
        pinned memory brings the number, which nobody waits for."""
        torch, known = self._torch, self._known
        for tensor, (number, _, _, on_host, _) in zip(tensors, reads, strict=True):
            if number not in self._lasting or number in known.filled or number in self._counts:
                continue
            if tensor.layout is not torch.strided or tensor.dim() != 2:
                continue
            if tensor.numel() < LARGE_MATRIX:
                continue
            rows = tensor.detach()[:: max(1, len(tensor) // SAMPLED)]
            count = torch.count_nonzero(rows)
            if not on_host:
                with torch.inference_mode(False):
                    arrives = torch.empty((), dtype=torch.int64, pin_memory=True, device="cpu")
                count = arrives.copy_(count, non_blocking=True)
            self._counts[number] = count, rows.numel()

    def ended(self) -> tuple[frozenset[int], Mapping[int, float]]:
        """The step is over: the storages that have lasted, and how full large matrices are."""
        known = self._known
        for number, (count, whole) in self._counts.items():
            known.filled[number] = int(count) / whole
        for number in self.written & self._lasting.keys():
            known.leaves.pop(self._lasting.pop(number), None)  # by `.data` it has no new version
        return frozenset(self._lasting), dict(known.filled)

    def _address(self, tensor: Any) -> int:
        """Of a sparse tensor, which has several, its own identity."""
        if tensor.layout is not self._torch.strided:
            return id(tensor)
        address: int = tensor.untyped_storage()._cdata
        return address

    def _alive(self, storage: int) -> int | None:
        known = self._storages.get(storage)
        return None if known is None or known[1]() else known[0]

    def _keep(self, storage: int, number: int, tensor: Any) -> None:
        known = self._storages.get(storage)
        if known is not None and known[0] == number and not known[1]():
            return
        if tensor.layout is self._torch.strided:
            is_freed = self._torch.multiprocessing.reductions.StorageWeakRef(
                tensor.untyped_storage()
            ).expired
        else:
            is_freed = partial(_is_dead, ref(tensor))
        self._storages[storage] = number, is_freed

    def _has_changed(self, tensor: Any, number: int) -> bool:
        """NumPy, or a worker, has written into it since it was read last in this step."""
        known = self._known.leaves.get(id(tensor))
        if known is None or known[2] != number or tensor.device.type != "cpu":
            return False
        return known[5] != self._checksum(tensor, 0, FEW)

    def _leaf(self, tensor: Any, storage: int) -> int:
        """The number of a tensor that was there before the step: the same as when it was seen last
        where it has not changed since."""
        known = self._known
        if tensor.requires_grad or tensor.is_inference():
            return known.next()
        before, version = known.leaves.get(id(tensor)), tensor._version
        whole, few = self._checksum(tensor, WHOLE_BYTES, PIECES), self._checksum(tensor, 0, FEW)
        if before is not None and before[0]() is tensor and whole is not None:
            number = before[2]
            if (before[1], *before[3:5]) == (version, storage, whole):
                if number not in self._fresh:
                    self._lasting[number] = id(tensor)
                return number
        number = known.next()
        self._fresh.add(number)
        if len(known.leaves) >= MOST_LEAVES:
            known.leaves.clear()
        if whole is not None and few is not None:
            known.leaves[id(tensor)] = ref(tensor), version, number, storage, whole, few
        return number

    def _checksum(self, tensor: Any, most: int, pieces: int) -> int | None:
        """Of what a tensor on the host holds: of all where that is no more than `most` bytes, else
        of so many pieces. None where too much was read, or it does not lie in a row. On a
        device none but the program's operations change it."""
        if tensor.device.type != "cpu" or tensor.layout is not self._torch.strided:
            return 0
        held = tensor.numel() * tensor.element_size()
        reads = held if held <= max(most, pieces * PIECE_BYTES) else pieces * PIECE_BYTES
        self._read_bytes += reads
        if self._read_bytes > MOST_READ_BYTES or not tensor.is_contiguous():
            return None
        if not held:
            return 0
        memory = memoryview((ctypes.c_char * held).from_address(tensor.data_ptr()))
        if reads == held:
            return zlib.crc32(memory)
        seen = 0
        for at in range(0, held, held // pieces):
            seen = zlib.crc32(memory[at : at + PIECE_BYTES], seen)
        return seen

    def _value(self, tensor: Any, number: int) -> Fields:
        on_host = tensor.device.type == "cpu"
        if tensor.layout is not self._torch.strided:
            return number, (tuple(tensor.shape), tensor.layout, tensor.dtype), 0, on_host, False
        seen = tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype
        known = self._known.views.get(seen)
        if known is None:
            held: int = tensor.dtype.itemsize
            for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
                if stride or not size:
                    held *= size
            known = self._known.views[seen] = seen, held
        return number, *known, on_host, tensor.requires_grad and tensor.is_leaf


def _is_dead(tensor: Callable[[], Any]) -> bool:
    return tensor() is None
