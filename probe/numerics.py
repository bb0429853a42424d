"""Takes scalars off a device without waiting for it: a copy into pinned memory behind an event,
read at a later call, once the device has passed that. Never a synchronisation.

A copy with its event costs some 30 us between other work (beside an H200; 10 us in a loop of
nothing else), so norms take a shorter way (`Ring`): one copy, no event, no query. Every second
norm is taken while somebody watches, fewer where looks are measured to cost more than `BUDGET_NS`
a norm; one in 32 while nobody does. Once a weight is NaN, every later norm is: so the norms in
between are held (4 bytes each) until a look behind them has arrived, and taken where that is the
first that is not finite. The step is exact then, however seldom looks are.
"""

import ctypes
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .device.events import Event, Events, find_events
from .loaders import past_overrides
from .notes import number_of
from .recorder import Recorder

CELLS: Final = 64
UNSET: Final = -1.0
"""No norm is below 0."""
NOTED: Final = 8
"""Of the norms that are finite one in so many is noted, for a curve."""
SLOTS: Final = 16
"""Copies on their way, of each type and device. With a device further behind, numbers are left
out."""
EVERY_WATCHED: Final = 2
MOST_WATCHED: Final = 16
EVERY_ALONE: Final = 32
BUDGET_NS: Final = 4_000
"""Of looks, by norm. The bar is 10 us a step, and 3.3 to 5.5 of it are the calls that do not look,
beside an H200. There a look costs 44 to 65 us, by a copy or by a kernel that writes into pinned
memory: what torch and the driver fetch into cold caches."""
LONGEST_NS: Final = 64_000
"""A look that took longer was interrupted: so much of it counts."""
SETTLES: Final = 8
"""The cost is a mean of about so many looks."""
FIRST: Final = 8
"""Of each kind so many are taken in any case: the first steps are where a run breaks most often."""


class Slots:
    """Places in pinned memory, of one type."""

    __slots__ = ("free",)

    def __init__(self, torch: Any, dtype: Any) -> None:
        with torch.inference_mode(False):  # else nothing outside of it could be copied there
            held = torch.empty(SLOTS, dtype=dtype, pin_memory=True, device="cpu")
            self.free: list[Any] = list(held.unbind())


Pending = tuple[Event, Slots, Any, int, str, str]
"""Passed event, slots, the slot, perf_counter_ns, kind, name."""

Between = list[tuple[Any, int]]
"""Norms that were not looked at, and perf_counter_ns."""


class Ring:
    """Norms on their way to the host, in float32: a cell of pinned memory each, which holds UNSET
    until the device has written there. Read as memory: no event, and no call into torch."""

    __slots__ = ("_between", "_cells", "_head", "_slots", "_tail", "_times")

    def __init__(self, torch: Any, pinned: bool = True) -> None:
        with torch.inference_mode(False):
            held = torch.zeros(CELLS, dtype=torch.float32, pin_memory=pinned, device="cpu")
            self._slots: list[Any] = list(held.unbind())
        self._cells = (ctypes.c_float * CELLS).from_address(held.data_ptr())
        self._times = [0] * CELLS
        self._between: list[Between | None] = [None] * CELLS
        self._head = self._tail = 0
        """Of the next that is put, and of the oldest that is not read."""

    def put(self, value: Any, now_ns: int, between: "Between | None") -> bool:
        """Start a copy of a norm into the next cell. `between`: the norms skipped since the last
        copy; None where this one was skipped itself and is looked up later. False where all cells
        wait for the device."""
        head = self._head
        after = (head + 1) % CELLS
        if after == self._tail:
            return False
        self._cells[head] = UNSET
        self._slots[head].copy_(value, non_blocking=True)
        self._times[head] = now_ns
        self._between[head] = between
        self._head = after
        return True

    def take(self) -> "tuple[int, float, Between | None] | None":
        """The oldest that has arrived: perf_counter_ns, the norm, and what was put with it."""
        tail = self._tail
        if tail == self._head or (figure := self._cells[tail]) == UNSET:
            return None
        self._tail = (tail + 1) % CELLS
        between, self._between[tail] = self._between[tail], None
        return self._times[tail], figure, between


class Numerics:
    """Used on the training thread only."""

    def __init__(self, recorder: Recorder) -> None:
        torch: Any = sys.modules["torch"]
        self._recorder = recorder
        self._torch = torch
        self._plain = frozenset((torch.Tensor, torch.nn.Parameter))
        self._dispatched: Callable[[], int] = torch._C._len_torch_dispatch_stack
        self._overridden: Callable[[], int] = torch._C._len_torch_function_stack
        functorch: Any = getattr(torch._C, "_functorch", None)
        self._is_wrapped: Callable[[Any], bool] = getattr(
            functorch, "is_functorch_wrapped_tensor", lambda value: False
        )
        self._events: Events | None = None
        self._slots: dict[tuple[int, Any], Slots] = {}
        self._streams: dict[tuple[int, int], Any] = {}
        self._pool: list[Event] = []
        self._pending: deque[Pending] = deque()
        self._tensor = torch.Tensor
        self._types = frozenset((torch.float32, torch.bfloat16, torch.float16))
        """That float32 holds every number of."""
        self._ring: Ring | None = None
        self._device = -1
        """Of the ring."""
        self._since: Between = []
        """Norms behind the last look."""
        self._fine: tuple[int, float] | None = None
        """The last look that was finite and is not noted: perf_counter_ns and norm."""
        self._every = EVERY_WATCHED
        """Of the norms while somebody watches."""
        self._cost_ns = BUDGET_NS
        """Of a look on the training thread."""
        self._arrivals = 0
        self._was_bad = False
        """The last norm that has arrived was not finite."""
        self._norms = 0
        self._calls: dict[str, int] = {}
        self._skipped = 0
        """Steps in a row that the GradScaler has not taken."""
        self.has_stepped = False
        """A GradScaler was seen to take a step. Before, it looks for its scale, and skips some."""

    def norm(self, value: Any) -> None:
        """The gradients' norm of a step: one in so many is looked at. In the step after it what has
        arrived is read, so that neither costs much."""
        norms = self._norms = self._norms + 1
        every = self._every if self._recorder.watched else EVERY_ALONE
        # The phase shifts, so that of two nets that clip in a step both have their turn.
        if (norms + (norms >> 6)) % every and norms > FIRST:
            if self._ring is not None:
                self._hold(value)
                self._arrived(self._ring)
            return
        began_ns = self._recorder.now_ns()
        if not self._is_plain(value):
            self._note("norm", "", value)
            return
        self._look(value, began_ns)
        if norms > FIRST:  # those make the ring, and what CUDA makes for its first copy
            cost_ns = self._recorder.now_ns() - began_ns
            self._cost_ns += (min(cost_ns, LONGEST_NS) - self._cost_ns) // SETTLES
            # So seldom that the bar holds, whatever a copy costs here.
            every = -(-self._cost_ns // BUDGET_NS)
            self._every = min(MOST_WATCHED, max(EVERY_WATCHED, every))

    def _is_plain(self, value: Any) -> bool:
        """On a CUDA device, in a usual type, and nothing of the user's would see it copied."""
        return bool(
            type(value) is self._tensor
            and value.is_cuda
            and not self._dispatched()
            and value.dtype in self._types
            and not self._overridden()
            and not value.dim()
            and not value.requires_grad
        )

    def _hold(self, value: Any) -> None:
        """Until a look behind it has arrived. Nothing of another device, nor of a graph's memory,
        which replays write."""
        since, events = self._since, self._events
        if type(value) is not self._tensor or len(since) >= EVERY_ALONE or events is None:
            return
        if value.get_device() == self._device and not (
            events.handle(self._device) and events.capturing()
        ):
            since.append((value, self._recorder.now_ns()))

    def _look(self, value: Any, now_ns: int) -> None:
        """Have it written. It is read in the next norms."""
        events = self._events
        if events is None:
            events = self._events = find_events()
            if events is None:
                return
        device = events.device()
        if value.get_device() != device or self._device not in (-1, device):
            return
        if events.handle(device) and events.capturing():
            return
        ring = self._ring
        if ring is None:
            ring, self._device = Ring(self._torch), device
            self._ring = ring
        if ring.put(value, now_ns, self._since):
            self._since = []

    def _arrived(self, ring: Ring) -> None:
        while (found := ring.take()) is not None:
            t_ns, figure, between = found
            if between is None:
                self._recorder.notes.add(t_ns, "norm", "", figure)
                continue
            arrivals = self._arrivals = self._arrivals + 1
            if figure - figure == 0.0 and arrivals % NOTED and not self._was_bad:
                self._fine = t_ns, figure
                continue
            is_bad = figure - figure != 0.0
            if is_bad and not self._was_bad:
                self._broke(ring, between)
            if not (is_bad and self._was_bad and arrivals % NOTED):
                self._recorder.notes.add(t_ns, "norm", "", figure)
            self._was_bad = is_bad

    def _broke(self, ring: Ring, between: Between) -> None:
        """At the first look that is not finite: note the one before, and ask which of the norms
        between the two was the first."""
        if self._fine is not None:
            self._recorder.notes.add(self._fine[0], "norm", "", self._fine[1])
        for value, t_ns in between:
            if self._is_plain(value):
                ring.put(value, t_ns, None)

    def log(self, name: str, value: Any, every: int = 1) -> None:
        """A number of the user's, one in so many of its name while somebody watches. A tensor of
        one element, or a number of Python's or NumPy's; anything else is passed over."""
        calls = self._calls[name] = self._calls.get(name, 0) + 1
        if self._pending and not self._dispatched():
            past_overrides(self._torch, Numerics._read, self)
        if calls % (every if self._recorder.watched else EVERY_ALONE) and calls > FIRST:
            return
        if type(value) in self._plain:
            self._note("log", name, value)
        elif (number := number_of(value)) is not None:
            self._recorder.notes.add(self._recorder.now_ns(), "log", name, number)

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
        """Of a tensor that is all here: no DTensor, of which each rank has a part, and none that
        vmap or grad has wrapped. Under a mode of the user's, which would see the copy, nothing is
        taken."""
        if type(value) not in self._plain or self._dispatched() or self._is_wrapped(value):
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
