"""What tensors on a device hold, taken to the host without a wait for it: plain copies into pinned
memory behind one event, read once the device has passed that. No kernel runs, and no memory of the
device is taken.

A copy costs its call, 8 to 12 us of the training thread's time, and 2 to 5 us of the device's.
"""

import ctypes
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .graph_rows import span, span_of

if TYPE_CHECKING:
    from ..device.events import Event, Events

BUFFER_BYTES: Final = 1 << 20
ALIGNED: Final = 16
"""Bytes: no element is larger."""
MOST_COPIES: Final = 512
"""Of one look: 6 ms at the most, once in a thousand times as long."""
PIECES: Final = 8
PIECE: Final = 64
"""Elements of each, so that 512 stand for a tensor."""
GOLDEN: Final = 0.6180339887498949
"""Pieces so far apart lie nowhere at the same column of rows: many texts begin and end alike. Each
look has others."""
WHOLE_BYTES: Final = 1 << 14
"""Of a tensor that is taken as a whole."""
ROWS: Final = 8
"""Parts of a tensor that is too large to be copied as a whole, spread over its first dimension."""
ROWS_BYTES: Final = 1 << 18


class _Asked(NamedTuple):
    """One tensor's copies: where each begins in the buffer, and how its elements lie there."""

    begins: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    span: int
    """Elements of the memory of each."""


class DeviceReads:
    """Belongs to the training thread. One look at a time: `begin`, questions, `end`; then `arrived`
    until the device has passed it."""

    def __init__(self, torch: Any, events: "Events", place: str = "cuda") -> None:
        self.place = place
        """Type of the device."""
        self._torch = torch
        self._events = events
        self._event: Event | None = None
        self._asked: list[_Asked] = []
        self._known: dict[Any, int | None] = {}
        self._used = self._copies = self._looks = 0
        self._buffer: Any = None

    def begin(self) -> bool:
        """Whether anything may be asked now: not while a graph is captured, for which no memory may
        be pinned either."""
        self._asked, self._known, self._used, self._copies = [], {}, 0, 0
        self._looks += 1
        device = self._events.device()
        if self._events.handle(device) and self._events.capturing():
            return False
        if self._buffer is None:
            torch, pinned = self._torch, self.place != "cpu"
            with torch.inference_mode(False):  # else nothing outside of it could be copied there
                self._buffer = torch.empty(
                    BUFFER_BYTES, dtype=torch.uint8, pin_memory=pinned, device="cpu"
                )
        return True

    def some_of(self, tensor: Any) -> int | None:
        """Ask for elements that are spread over a tensor's memory. None where too much was asked
        for, or they lie too far apart."""
        count = tensor.numel()
        if not count or span_of(tensor) != count:
            return None
        if count * tensor.element_size() <= WHOLE_BYTES:
            return self._ask("some", tensor, (0,), (count,), (1,))
        last, turn = count - PIECE, self._looks * GOLDEN
        between = range(1, PIECES - 1)
        spread = tuple(int(last * ((turn + number) * GOLDEN % 1.0)) for number in between)
        begins = (0, *spread, last)
        return self._ask("some", tensor, begins, (PIECE,), (1,))

    def rows_of(self, tensor: Any) -> int | None:
        """Ask for a tensor, or for parts along its first dimension where it is large."""
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        size = tensor.element_size()
        if not tensor.numel() or not shape:
            return None
        if span_of(tensor) * size <= ROWS_BYTES:
            return self._ask("rows", tensor, (0,), shape, strides)
        row = span_of(tensor[0])
        each = 1 + (ROWS_BYTES // ROWS // size - row) // max(1, strides[0])
        if row * size > ROWS_BYTES // ROWS or each * ROWS > shape[0]:
            return None
        begins = tuple(part * (shape[0] // ROWS) * strides[0] for part in range(ROWS))
        return self._ask("rows", tensor, begins, (each, *shape[1:]), strides)

    def end(self) -> bool:
        """Whether anything was asked for."""
        if not self._asked:
            return False
        events, device = self._events, self._events.device()
        self._event = self._event or events.make()
        events.record(self._event, events.stream(device))
        return True

    def arrived(self) -> "Answers | None":
        """None while the device is not there yet, or while a query would break a capture. To be
        read before the next look."""
        events, device = self._events, self._events.device()
        if events.handle(device) and events.capturing():
            return None
        return Answers(self._buffer, self._asked) if events.query(self._event) else None

    def _ask(
        self,
        kind: str,
        tensor: Any,
        begins: tuple[int, ...],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> int | None:
        key = kind, tensor.data_ptr(), tensor.dtype, shape, strides, begins
        if key not in self._known:
            self._known[key] = self._copy(tensor, begins, shape, strides)
        return self._known[key]

    def _copy(
        self,
        tensor: Any,
        begins: tuple[int, ...],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> int | None:
        elements = span(shape, strides)
        took = elements * tensor.element_size()
        apart = -(-took // ALIGNED) * ALIGNED
        self._copies += len(begins)
        here = tensor.get_device() == self._events.device() or self.place == "cpu"
        fits = self._used + apart * len(begins) <= BUFFER_BYTES
        if not (here and fits) or self._copies > MOST_COPIES or not _is_plain(tensor):
            return None
        held, places = tensor.detach(), []
        for begin in begins:
            source = held.as_strided((elements,), (1,), held.storage_offset() + begin)
            cell = self._buffer[self._used : self._used + took].view(tensor.dtype)
            cell.copy_(source, non_blocking=True)
            places.append(self._used)
            self._used += apart
        self._asked.append(_Asked(tuple(places), shape, strides, tensor.dtype, elements))
        return len(self._asked) - 1


class Answers:
    """What has arrived, by the number of each question."""

    def __init__(self, buffer: Any, asked: Sequence[_Asked]) -> None:
        self._buffer = buffer
        self._asked = asked

    def bytes_of(self, number: int) -> bytes:
        """All that was copied of a tensor."""
        asked, size = self._asked[number], self._size(number)
        begin = self._buffer.data_ptr()
        return b"".join(ctypes.string_at(begin + at, size) for at in asked.begins)

    def values_of(self, number: int) -> list[float]:
        """The same as numbers."""
        return [value for part in self.parts_of(number) for value in part.flatten().tolist()]

    def parts_of(self, number: int) -> list[Any]:
        """The tensor, or its parts."""
        asked, size = self._asked[number], self._size(number)
        cells = [self._buffer[at : at + size].view(asked.dtype) for at in asked.begins]
        return [cell.as_strided(asked.shape, asked.strides) for cell in cells]

    def _size(self, number: int) -> int:
        return int(self._asked[number].span * self._asked[number].dtype.itemsize)


def find_reads() -> DeviceReads | None:
    """None where the program has begun to use no device of CUDA's. A run without one loads nothing
    of a device's."""
    torch: Any = sys.modules.get("torch")
    cuda: Any = sys.modules.get("torch.cuda")
    if torch is None or cuda is None or not cuda.is_initialized():
        return None
    from ..device.events import find_events

    events = find_events()
    return None if events is None else DeviceReads(torch, events)


def place_of(reads: DeviceReads | None) -> str:
    """Where what is read lies: at once on the host, without any."""
    return "cpu" if reads is None else reads.place


def _is_plain(tensor: Any) -> bool:
    """Its memory holds its numbers."""
    return not (tensor.is_complex() or tensor.is_neg() or tensor.is_quantized)
