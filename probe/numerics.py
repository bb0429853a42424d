"""Takes scalars off a device without waiting for it: a copy into pinned memory behind an event,
read at a later call, once the device has passed that. Never a synchronisation.

A copy with its event costs some 10 us (beside an H200), so of gradient norms every second is taken
while somebody watches and one in 32 while nobody does: once a weight is NaN, every later norm is.
"""

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .device.events import Event, Events, find_events
from .loaders import past_overrides
from .recorder import Recorder

SLOTS: Final = 16
"""Copies on their way, of each type and device. With a device further behind, numbers are left
out."""
EVERY_WATCHED: Final = 2
EVERY_ALONE: Final = 32
FIRST: Final = 8
"""Of each kind so many are taken in any case: the first steps are where a run breaks most often."""


class Slots:
    """Places in pinned memory, of one type."""

    __slots__ = ("free",)

    def __init__(self, torch: Any, dtype: Any) -> None:
        held = torch.empty(SLOTS, dtype=dtype, pin_memory=True, device="cpu")
        self.free: list[Any] = list(held.unbind())


Pending = tuple[Event, Slots, Any, int, str, str]
"""Passed event, slots, the slot, perf_counter_ns, kind, name."""


class Numerics:
    """Used on the training thread only."""

    def __init__(self, recorder: Recorder) -> None:
        torch: Any = sys.modules["torch"]
        self._recorder = recorder
        self._torch = torch
        self._plain = frozenset((torch.Tensor, torch.nn.Parameter))
        self._dispatched: Callable[[], int] = torch._C._len_torch_dispatch_stack
        self._overridden: Callable[[], int] = torch._C._len_torch_function_stack
        self._events: Events | None = None
        self._slots: dict[tuple[int, Any], Slots] = {}
        self._streams: dict[tuple[int, int], Any] = {}
        self._pool: list[Event] = []
        self._pending: deque[Pending] = deque()
        self._norms = 0
        self._calls: dict[str, int] = {}
        self._skipped = 0
        """Steps in a row that the GradScaler has not taken."""
        self.has_stepped = False
        """A GradScaler was seen to take a step. Until then a step without the optimizer's marks may
        as well be one of a compiled optimizer, which has none."""

    def norm(self, value: Any) -> None:
        """The gradients' norm of a step: one in so many is noted."""
        self._norms = norms = self._norms + 1
        if self._pending:
            self._read()
        every = EVERY_WATCHED if self._recorder.watched else EVERY_ALONE
        if norms % every and norms > FIRST:
            return
        self._note("norm", "", value)

    def log(self, name: str, value: Any, every: int = 1) -> None:
        """A number of the user's, one in so many of its name while somebody watches. A tensor of
        one element, or a number of Python's; anything else is passed over."""
        calls = self._calls[name] = self._calls.get(name, 0) + 1
        if self._pending:
            self._read()
        if calls % (every if self._recorder.watched else EVERY_ALONE) and calls > FIRST:
            return
        if isinstance(value, (int, float)):
            self._recorder.notes.add(self._recorder.now_ns(), "log", name, float(value))
        else:
            self._note("log", name, value)

    def stepped(self, skipped: bool) -> None:
        """A GradScaler took the optimizer's step, or skipped it for gradients that are not finite,
        as it knew itself."""
        if not skipped:
            self.has_stepped = True
            if self._skipped:
                self._skipped = 0
                self._recorder.notes.add(self._recorder.now_ns(), "skipped", "", 0.0)
            return
        self._skipped += 1
        self._recorder.notes.add(self._recorder.now_ns(), "skipped", "", float(self._skipped))

    def _note(self, kind: str, name: str, value: Any) -> None:
        """Of a tensor that is all here: no DTensor, of which each rank has a part. Under a mode of
        the user's, which would see the copy, nothing is taken."""
        if type(value) not in self._plain or self._dispatched():
            return
        now_ns = self._recorder.now_ns()
        if self._overridden():
            past_overrides(self._torch, lambda held: self._off(held, now_ns, kind, name), value)
        else:
            self._off(value, now_ns, kind, name)

    def _off(self, value: Any, now_ns: int, kind: str, name: str) -> None:
        if value.dim() and value.numel() != 1:
            return
        held = value.detach() if value.requires_grad else value
        if value.is_cuda:
            self._copy(held, now_ns, kind, name)
        elif value.device.type == "cpu" and not value.is_complex():
            self._recorder.notes.add(now_ns, kind, name, float(held.item()))

    def _copy(self, value: Any, now_ns: int, kind: str, name: str) -> None:
        events = self._events
        if events is None:
            events = self._events = find_events()
            if events is None:
                return
        device = events.device()
        if value.get_device() != device or value.is_complex():
            return
        handle = events.handle(device)
        if handle and events.capturing():
            return
        slots = self._slots.get((device, value.dtype))
        if slots is None:
            slots = self._slots[device, value.dtype] = Slots(self._torch, value.dtype)
        stream = self._streams.get((device, handle))
        if stream is None:
            if len(self._streams) >= SLOTS:
                self._streams.clear()
            stream = self._streams[device, handle] = events.stream(device)
        if not slots.free:
            return
        slot = slots.free.pop()
        slot.copy_(value.reshape(()) if value.dim() else value, non_blocking=True)
        event = self._pool.pop() if self._pool else events.make()
        events.record(event, stream)
        self._pending.append((event, slots, slot, now_ns, kind, name))

    def _read(self) -> None:
        """What the device has passed meanwhile; nothing while a graph is captured, which a query
        would break."""
        events = self._events
        assert events is not None
        device = events.device()
        if events.handle(device) and events.capturing():
            return
        pending, notes = self._pending, self._recorder.notes
        while pending and events.query(pending[0][0]):
            event, slots, slot, t_ns, kind, name = pending.popleft()
            figure = float(slot.item())
            slots.free.append(slot)
            self._pool.append(event)
            notes.add(t_ns, kind, name, figure)
