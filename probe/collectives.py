"""What PyTorch's flight recorder has of the collectives, for a monitor that asks.

Counters are read on the publisher's thread: they touch no event of the device (30 to 110 us on an
H200). Once no mark has come for `STILL_NS`, and before the first, where the training thread is
comes with them, and from `QUIET_NS` on those entries that have not ended. Entries query events that
are not retired, which breaks a CUDA graph capture from any other thread, unless that has declared
that it may (`_beside_captures`). All of them are read by the training thread, at the end of a step,
when the device has all of its work queued, and not while it captures. 2,000 entries take 35 to 88
ms there, about as long with gloo: seldom, in the same step on all ranks (a moment is asked for),
and never for more than `MOST_PPM` of the time. The monitor parses them. GPUWATCH_CONTROL=0 forbids
it.

NCCL's durations need timing, which is switched on for good with the first entries asked for:
PyTorch has no switch back.
"""

import ctypes
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from . import clock
from .peers import OFF, QUIET_NS, are_commands_off, stack_of
from .recorder import Recorder
from .wire.marks import COMPILE_ENTER, FETCH_ENTER, OPTIMIZER_LEAVE, STEP

ENDS: Final = frozenset({FETCH_ENTER, OPTIMIZER_LEAVE, STEP})
"""Marks at which the device has a step's work queued."""
AGAIN_NS: Final = 2_000_000_000
MOST_PPM: Final = 3_000
"""Of the training thread's time."""
TIMED_NS: Final = 1_500_000_000
"""From switching on NCCL's timing to the first entries: a verdict is due within 10 s."""
WAITS_NS: Final = 60_000_000_000
"""A step that has not ended by then ends no more for who has asked."""
STILL_NS: Final = 2_000_000_000
"""No mark for so long, and where the training thread is comes with the counters: seen twice at the
same line it stands."""
MOST_WAITING: Final = 16
MOST_BYTES: Final = 3_900_000
"""A frame has 4 MiB; entries of 10,000 collectives do not fit."""
MOST_MODULES: Final = 8
_LOGGED: Final = (
    "iteration",
    "backward_comm_time",
    "backward_compute_comm_overlap_time",
    "backward_compute_time",
    "forward_compute_time",
    "bucket_cap_bytes",
    "gradient_as_bucket_view",
    "total_parameter_size_bytes",
    "num_buckets_reduced",
)


class Taken(NamedTuple):
    """What is sent: the head of `messages.Collectives`, and the recorder's own JSON."""

    taken_ns: int
    unix_ns: int
    """The same moment on the clock of the entries."""
    entries: bool
    cost_ns: int
    """To the thread that read it."""
    modules: list[list[int]]
    """By DistributedDataParallel: the figures of `_LOGGED`."""
    why_not: str
    frames: list[tuple[str, str, int]]
    """Of the training thread, outermost first, where it stands."""
    body: bytes


class Collectives:
    """`at` is the training thread's, everything else the publisher's."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._off = are_commands_off()
        self._waiting: dict[bytes, int] = {}
        """Who has asked for entries, and when."""
        self._at_ns = 0
        """Not before."""
        self._again_ns = 0
        self._timed = False
        self._taken: deque[Taken] = deque(maxlen=1)
        self._last: Taken | None = None
        """For who asks before more may be read."""

    def ask(self, who: bytes, at_ns: int, entries: bool, now_ns: int) -> Taken | None:
        """Read counters and return them; or have entries read at the end of the step that runs at
        `at_ns`, which `answers` then has."""
        why_not = OFF if self._off else _why_not()
        frames = [] if entries or self._off else self._place(now_ns)
        if why_not:
            return Taken(now_ns, clock.unix_ns(), entries, 0, [], why_not, frames, b"{}")
        if not entries:
            marked_ns, kind = self._recorder.newest()
            may_capture = kind in (0, COMPILE_ENTER)
            return _counters(now_ns, now_ns - marked_ns >= QUIET_NS and not may_capture, frames)
        if self._last is not None and now_ns < self._again_ns:
            return self._last
        if len(self._waiting) < MOST_WAITING:
            self._at_ns = at_ns if not self._waiting else self._at_ns
            self._waiting[who] = now_ns
            self._recorder.collect_with(self.at)
        return None

    def _place(self, now_ns: int) -> list[tuple[str, str, int]]:
        """Where the training thread is, once it is still and before its first mark."""
        marked_ns, kind = self._recorder.newest()
        is_still = kind == 0 or now_ns - marked_ns >= STILL_NS
        return stack_of(self._recorder.owner) if is_still else []

    def answers(self, now_ns: int) -> list[tuple[bytes, Taken]]:
        """What was read since the last turn, for each who has asked."""
        if not self._waiting:
            return []
        if self._taken:
            self._last, waiting = self._taken.popleft(), list(self._waiting)
            self._waiting.clear()
            taken = self._last
            return [(who, taken) for who in waiting]
        self._waiting = {
            who: asked_ns for who, asked_ns in self._waiting.items() if now_ns - asked_ns < WAITS_NS
        }
        if not self._waiting:
            self._recorder.collect_with(None)
        return []

    def at(self, kind: int) -> None:
        """Behind a mark of this kind: read the entries if it is time to. The recorder keeps what
        fails in here from the user's loop."""
        if kind not in ENDS or clock.now_ns() < self._at_ns or _is_capturing():
            return
        if not self._timed:
            self._timed = True
            if _time_collectives():
                self._at_ns = max(self._at_ns, clock.now_ns()) + TIMED_NS
                return
        self._recorder.collect_with(None)
        modules = _logged(self._recorder)
        began_ns, unix_ns = clock.now_ns(), clock.unix_ns()
        body = _dump(True)
        why_not = "" if len(body) <= MOST_BYTES else f"{len(body)} bytes of entries are too many"
        ended_ns = clock.now_ns()
        cost_ns = ended_ns - began_ns
        self._again_ns = ended_ns + max(AGAIN_NS, cost_ns * 1_000_000 // MOST_PPM)
        body = b"{}" if why_not else body
        self._taken.append(Taken(began_ns, unix_ns, True, cost_ns, modules, why_not, [], body))


def _counters(now_ns: int, with_active: bool, frames: list[tuple[str, str, int]]) -> Taken:
    """Counters, and what has not ended if it is asked for; `frames` go with them."""
    unix_ns = clock.unix_ns()
    body = b""
    if with_active:
        with _beside_captures() as may:
            body = _dump(may, only_active=True)
    if not body or len(body) > MOST_BYTES:
        body = _dump(False, only_active=True)
    return Taken(now_ns, unix_ns, False, clock.now_ns() - now_ns, [], "", frames, body)


_RELAXED: Final = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED."""


@contextmanager
def _beside_captures() -> Iterator[bool]:
    """What this thread asks of events meanwhile ends no capture of another thread's, as PyTorch's
    own watchdog does it; whether it may ask."""
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None or not cuda.is_initialized():
        yield True
        return
    try:
        exchange = ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    except (OSError, AttributeError):
        yield False
        return
    mode = ctypes.c_int(_RELAXED)
    if exchange(ctypes.byref(mode)) != 0:
        yield False
        return
    try:
        yield True
    finally:
        exchange(ctypes.byref(mode))


def _c10d() -> Any:
    return sys.modules.get("torch._C._distributed_c10d")


def _why_not() -> str:
    """Why there are no collectives to read; "" where there may be."""
    module = _c10d()
    distributed = sys.modules.get("torch.distributed")
    if module is None or distributed is None or not distributed.is_initialized():
        return "torch.distributed is not initialised"
    if not any(hasattr(module, name) for name in _DUMPS):
        return "this PyTorch has no flight recorder that gives JSON"
    return ""


_DUMPS: Final = ("_dump_nccl_trace_json", "_dump_fr_trace_json")
"""Of NCCL where that is built in; of gloo, and of the newer NCCL."""


def _dump(entries: bool, only_active: bool = False) -> bytes:
    """The one that knows a process group; no Python stacks, which have deadlocked."""
    found = b"{}"
    for name in _DUMPS:
        dump = getattr(_c10d(), name, None)
        if dump is None:
            continue
        made = dump(entries, only_active)
        found = made if isinstance(made, bytes) else made.encode("utf-8", "replace")
        if b'"pg_status":{}' not in found.replace(b" ", b"")[-4096:]:
            break
    return found


def _is_capturing() -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    return cuda is not None and cuda.is_initialized() and bool(cuda.is_current_stream_capturing())


def _time_collectives() -> bool:
    """Have every process group of NCCL measure how long its collectives take; whether there is
    one."""
    distributed: Any = sys.modules["torch.distributed.distributed_c10d"]
    timed = False
    for group in list(distributed._world.pg_map):
        enable = getattr(group, "_enable_collectives_timing", None)
        if enable is not None and "nccl" in distributed.get_backend(group):
            enable()
            timed = True
    return timed


def _logged(recorder: Recorder) -> list[list[int]]:
    """What each DistributedDataParallel has measured by itself, in its first ten iterations and
    every hundredth from then on: reading it costs 40 us and measures nothing anew."""
    rows: list[list[int]] = []
    for seen in list(recorder.parallel)[:MOST_MODULES]:
        module = seen()
        if module is None:
            continue
        data = module._get_ddp_logging_data()
        rows.append([int(data.get(name) or 0) for name in _LOGGED])
    return rows


LOADED: Final = True
"""The last line: the publisher, which imports nothing, uses the module once it is whole."""
