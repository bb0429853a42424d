"""The memory's window, for a monitor that asks: what is allocated in it and still there at its end.

On the device, torch's own history of the caching allocator: its Python stacks (2 us each by
torch's docstring) and its last `MOST_ENTRIES` events. A block whose allocation is no longer among
those is older than they are. The history is switched off at the end; one that the program has
switched on itself is left alone, and the window refused, or ended where that comes later.

On the host, if wanted or where no device is used, `tracemalloc`: every allocation of Python's is
traced while it is on, which makes Python code two to four times as slow. It does not see what C++
allocates: a tensor is its Python object, so the line that made it is there and its bytes are not.
Those are summed over the tensors that the garbage collector knows. What grows is seen by two looks,
at the end of a step each: after a third of the window, when what is allocated once is there, and at
its end. Workers of a DataLoader that are forks are traced as well (`worker_memory`).

GPUWATCH_CONTROL=0 forbids it.
"""

import os
import pickle
import sys
from _tracemalloc import is_tracing
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .. import clock, worker_board
from ..circuit_breaker import is_users
from ..figures import resident_bytes
from ..peers import OFF, are_commands_off
from ..private_files import create, remove
from ..recorder import Recorder
from ..switched import Switched
from ..wire import marks
from .giving_way import PythonTraces, give_way_before
from .memory_facts import Lines, Types, device_answer, host_answer, lines_now, types_now
from .step_ends import StepEnds, step_ends
from .torch_now import is_capturing, used_cuda
from .worker_memory import WorkersAsked

MOST_NS: Final = 600_000_000_000
WAITS_NS: Final = 60_000_000_000
KEPT_NS: Final = 120_000_000_000
MOST_ENTRIES: Final = 20_000
"""Events of the allocator that are kept: about 1 KB each with its Python stack."""
HOST_FRAMES: Final = 16
LATE_NS: Final = 10_000_000_000
"""Beyond three times what was asked for, while Python is traced: then no step ends any more."""
PATIENCE_NS: Final = 75_000_000_000
"""Beyond it with the device's history alone, which costs little: nobody waits longer."""
LEAST_STEPS: Final = 10
"""Between the two looks at Python's memory: what comes every few steps is then no growth."""
LEFT: Final = "the loop went no further"
ITS_HISTORY: Final = "the program records its allocator's history itself"
ITS_TRACES: Final = "the program runs tracemalloc itself"


class MemoryHistory:
    """`at` is the training thread's, everything else the publisher's. One window at a time."""

    def __init__(self, recorder: Recorder, stem: str) -> None:
        """`stem`: of the socket's path, and so of the file's path."""
        self._recorder = recorder
        self._stem = stem
        self._off = are_commands_off()
        self._who: bytes | None = None
        self._given_up = False
        """Who asked has left."""
        self._asked_ns = 0
        self._for_ns = 0
        self._host = False
        self._ends = StepEnds(set())
        self._began_ns: int | None = None
        self._steps: list[int] = []
        """perf_counter_ns of the steps' ends."""
        self._first: tuple[int, Lines] | None = None
        """The earlier look at Python's allocations: steps by then, lines."""
        self._types: Types = {}
        """As the window began."""
        self._switched: Switched | None = None
        """While anything is on for us."""
        self._end_history: Callable[[], object] | None = None
        """While the allocator's history is on for us: switches it off."""
        self._traces: PythonTraces | None = None
        """While tracemalloc is on for us."""
        self._why_cut = LEFT
        self._workers: WorkersAsked | None = None
        """While theirs are traced, or waited for."""
        self._rss_bytes = 0
        self._cost_ns = 0
        self._made: deque[tuple[dict[str, Any], Any]] = deque(maxlen=1)
        """Answers, and what goes into the snapshot's file."""
        self._file: tuple[str, int] | None = None

    @property
    def is_open(self) -> bool:
        """A window is asked for, or not yet over."""
        return self._who is not None

    def ask(self, who: bytes, for_ns: int, host: bool, now_ns: int) -> dict[str, Any] | None:
        """Begin at the next step's end. Returns the refusal, or None."""
        why_not = self._why_not()
        if why_not:
            return {"why_not": why_not}
        self._ends = step_ends(self._recorder)
        self._who, self._asked_ns, self._given_up = who, now_ns, False
        self._for_ns = max(1_000_000, min(for_ns, MOST_NS))
        self._host = host or _cuda_memory() is None
        self._began_ns, self._first, self._steps, self._cost_ns = None, None, [], 0
        self._why_cut = LEFT
        self._recorder.window_with(self.at)
        return None

    @property
    def who(self) -> bytes | None:
        """Whose window is open."""
        return self._who

    def give_up(self) -> None:
        """Who asked has left: the window ends with the step."""
        self._given_up = True
        if (switched := self._switched) is not None:  # where no step ends any more
            switched.until_ns = min(switched.until_ns, clock.now_ns() + LATE_NS)

    def turn(self, now_ns: int) -> "tuple[bytes, dict[str, Any]] | None":
        """What is to be answered, and to whom."""
        if self._file is not None and now_ns >= self._file[1]:
            self.remove()
        if self._who is None:
            return None
        asked = self._workers
        if self._made:
            if (
                asked is not None
                and asked.is_waited_for(now_ns)
                and not self._made[0][0]["why_not"]
            ):
                return None
            answer, snapshot = self._made.popleft()
            if asked is not None:
                answer["in_workers"] = asked.answer()
                self._workers = None
            if snapshot is not None:
                self._write(answer, snapshot, now_ns)
            who, self._who = self._who, None
            return who, answer
        if self._began_ns is None and now_ns - self._asked_ns > WAITS_NS:
            self._recorder.window_with(None)
            who, self._who = self._who, None
            return who, {"why_not": f"no step has ended within {WAITS_NS // 1_000_000_000} s"}
        return None

    def remove(self) -> None:
        """Remove what nobody has taken."""
        if self._file is not None:
            path, self._file = self._file[0], None
            remove(path)
        if self._workers is not None:
            self._workers.remove()

    def at(self, kind: int) -> None:
        """Behind a mark of this kind. What fails in here is the answer, not the probe's end."""
        try:
            self._at(kind)
        except Exception as error:
            self._recorder.window_with(None)
            if is_users(error):
                raise
            self._stop()
            self._end_workers()
            self._made.append(({"why_not": f"{type(error).__name__}: {str(error)[:300]}"}, None))

    # -- on the training thread --------------------------------------------------------------

    def _at(self, kind: int) -> None:
        if kind in marks.ASIDES or not self._ends.at(kind) or is_capturing():
            return
        now_ns = clock.now_ns()
        if self._began_ns is not None and self._switched is None:  # cut, on whatever thread
            self._recorder.window_with(None)
            return
        if self._given_up:
            self._recorder.window_with(None)
            self._stop()
            self._end_workers()
            self._made.append(({"why_not": "who asked has left"}, None))
            return
        if self._host and self._began_ns is not None and not is_tracing():
            raise RuntimeError("the program has stopped tracemalloc itself")
        if self._began_ns is None:
            self._begin()
            self._began_ns = clock.now_ns()
            self._cost_ns += self._began_ns - now_ns
            return
        self._steps.append(now_ns)
        passed_ns = now_ns - self._began_ns
        if self._host and self._first is None and passed_ns >= self._for_ns // 3:
            self._first = len(self._steps), lines_now()
            self._cost_ns += clock.now_ns() - now_ns
        elif passed_ns >= self._for_ns and self._has_steps(passed_ns):
            self._end(now_ns)

    def _has_steps(self, passed_ns: int) -> bool:
        """Enough since the first look; not waited for beyond three times what was asked for."""
        since = len(self._steps) - self._first[0] if self._first is not None else LEAST_STEPS
        return since >= LEAST_STEPS or passed_ns >= 3 * self._for_ns

    def _begin(self) -> None:
        self._rss_bytes = resident_bytes()[0] or 0
        memory = _cuda_memory()
        if memory is not None and _is_recording():
            raise RuntimeError(ITS_HISTORY)
        if self._host and is_tracing():
            raise RuntimeError(ITS_TRACES)
        if self._host:
            self._types = types_now()  # counting makes integers, each of which would be traced
        limit_ns = 3 * self._for_ns + LATE_NS if self._host else self._for_ns + PATIENCE_NS
        until_ns = clock.now_ns() + limit_ns
        self._switched = Switched(self._cut, until_ns, self._leave_in_child, anywhere=True)
        if memory is not None:
            self._begin_history(memory)
        if self._host:
            self._traces = PythonTraces(lambda: self._give_way(ITS_TRACES))
            self._traces.start(HOST_FRAMES)
            if worker_board.board is not None:
                until_ns = clock.now_ns() + self._for_ns
                self._workers = WorkersAsked(self._stem, until_ns)
                worker_board.board.ask(self._stem, until_ns)

    def _begin_history(self, memory: Any) -> None:
        name = "_record_memory_history"
        record = getattr(memory, name)
        put_back = give_way_before(memory, name, lambda: self._give_way(ITS_HISTORY))

        def end() -> None:
            put_back()
            record(None)

        self._end_history = end
        record("all", context="alloc", stacks="python", max_entries=MOST_ENTRIES)

    def _end(self, now_ns: int) -> None:
        assert self._began_ns is not None
        memory = _cuda_memory()
        answer: dict[str, Any] = {
            "why_not": "",
            "seconds": (now_ns - self._began_ns) / 1e9,
            "steps": len(self._steps),
            "device": None,
            "host": None,
            "rss_grew_bytes": (resident_bytes()[0] or 0) - self._rss_bytes,
        }
        snapshot = None
        if memory is not None:
            snapshot = memory._snapshot()
            answer["device"] = device_answer(snapshot, self._steps_us())
        lines = lines_now() if self._first is not None else {}
        if not self._stop():
            return  # it was cut just now, which is the answer
        if self._first is not None:
            answer["host"] = host_answer(
                *self._first, len(self._steps), lines, self._types, types_now()
            )
        self._recorder.window_with(None)
        self._cost_ns += clock.now_ns() - now_ns
        answer["cost_ns"] = self._cost_ns
        self._made.append((answer, snapshot))

    def _steps_us(self) -> list[int]:
        """Ends of the steps on the clock of the allocator's entries, microseconds."""
        ahead_ns = clock.unix_ns() - clock.now_ns()
        return [(at_ns + ahead_ns) // 1_000 for at_ns in self._steps]

    def _stop(self) -> bool:
        """Switch off what is on for us. False where nothing is, or another thread was first."""
        switched, self._switched = self._switched, None
        if switched is None:
            return False
        switched.done()
        traces, self._traces = self._traces, None
        if traces is not None:
            traces.stop()
        end_history, self._end_history = self._end_history, None
        if end_history is not None:
            end_history()
        return True

    def _leave_in_child(self) -> None:
        """A fork's child cannot use the device, and must not wait for its allocator."""
        self._switched = None
        traces, self._traces = self._traces, None
        if traces is not None:
            traces.stop()

    def _end_workers(self) -> None:
        """Before their time: what they have is not waited for."""
        if self._workers is not None and worker_board.board is not None:
            worker_board.board.end()

    def _cut(self) -> None:
        """No step's end comes, the probe leaves, or the program begins its own. On any thread: no
        call of these asks the device."""
        if self._stop():
            self._end_workers()
            self._made.append(({"why_not": self._why_cut}, None))

    def _give_way(self, why_not: str) -> None:
        """The program switches on or off itself what is on for us. On whatever thread."""
        switched = self._switched
        if switched is not None:
            self._why_cut = why_not
            switched.off()

    # -- refusals and the file ---------------------------------------------------------------

    def _why_not(self) -> str:
        if self._off:
            return OFF
        if not self._recorder.owner:
            return "no thread trains"
        return ""

    def _write(self, answer: dict[str, Any], snapshot: Any, now_ns: int) -> None:
        """For memory_viz: what `torch.cuda.memory._dump_snapshot` writes."""
        path = f"{self._stem}.snapshot"
        remove(path)
        try:
            with open(create(path), "wb") as file:
                pickle.dump(snapshot, file)
                answer["bytes"] = file.tell()
        except OSError as error:
            answer["no_file"] = f"{path}: {error.strerror}"
            return
        answer["file"] = os.path.basename(path)
        self._file = path, now_ns + KEPT_NS


def _cuda_memory() -> Any:
    """`torch.cuda.memory` where the program uses a device."""
    cuda = used_cuda()
    return None if cuda is None else cuda.memory


def _is_recording() -> bool:
    torch: Any = sys.modules["torch"]
    asks = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(asks()) if asks is not None else False
