"""Python stacks of the target and its workers, by py-spy, without ever pausing them."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

import psutil

from .. import clock
from ..discovery.command_lines import is_worker
from ..discovery.state_page import PROC, is_root, no_stacks, ptrace_scope
from ..discovery.targets import still_runs
from ..model.observations import AnyObservation, Missing, StacksSeen
from .py_spy import CHUNK_S, MOST_TRACE_BYTES, SAMPLES, SOON_S, PySpy, Ran, read_trace, with_unseen
from .source_text.files import ShortPaths, lines_of
from .source_text.structure import SourceStructure
from .stack_samples import sampled
from .system import Descendants, Pace


class LoaderWorkers:
    """Samples them in turns."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._below = Descendants(pid)
        self._last = 0

    def pids(self) -> tuple[int, ...]:
        """Those that are there now."""
        found = []
        for child in self._below.look():
            with suppress(psutil.Error):  # it may end while we look, and the target too
                if is_worker(child, psutil.Process(self._pid)):
                    found.append(child.pid)
        return tuple(sorted(found))

    def next_of(self, pids: tuple[int, ...]) -> int:
        """The one after the last one; each gets its turn while they stay the same."""
        later = [pid for pid in pids if pid > self._last]
        self._last = later[0] if later else pids[0]
        return self._last


# Whose stacks are sampled next, and when: within a share of a core.

Turn = Literal["all", "main", "worker"]
"""Every process of the training, its main process, or one of its workers."""

EAGER: Final = 3
"""The first chunks are of all, follow one another at once and are on no account: a verdict is
wanted within ten seconds, and a watch begins once."""
BUDGET: Final = 0.008
"""Of a core, for the turns; measured over a minute with four and with eight workers: 0.8 % (the bar
is 1 %). That is a turn every 4.5 s: 120 samples a minute of the main thread, and as many of the
workers. The rules apply from 20 in the last minute."""
ALONE_BUDGET: Final = 0.02
"""Without a probe samples are all there is: so much for chunks of all, and as much for those of the
main process between them. Of the two the second is not used up, as one chunk follows the other:
together they take 2.8 % with four workers."""
MAIN_NS: Final = 17_000_000_000
"""Between two turns of the main thread at most, whatever they cost. With a worker's turn that runs
by then it is less than 20 s: so three chunks of 19 samples lie in any minute."""
WORKER_NS: Final = 25_000_000_000
"""The same for the workers: two chunks, as one alone is below what the rules need."""


class Turns:
    """Keeps the accounts."""

    def __init__(self, alone: bool) -> None:
        """`alone`: there is no probe."""
        share = ALONE_BUDGET if alone else BUDGET
        self._alone = alone
        self._eager = EAGER
        self._last: Turn = "all"
        self._main_ns: int | None = None
        self._worker_ns: int | None = None
        """When their last turns began, also as one of all."""
        self._together = Pace(0, share)
        """Of a probed run, only where it stands still: all workers at one moment are wanted then,
        and this is not the steady state that the budget is for."""
        self._apart = Pace(0, share)

    @property
    def is_wanted_soon(self) -> bool:
        """It is the first chunk, and steps say the rest: without a probe the times at which samples
        lie are all there is to count steps by, and a second holds few."""
        return self._eager == EAGER and not self._alone

    def due(self, now_ns: int, is_still: bool) -> Turn | None:
        """Whose turn it is now; None when it is nobody's."""
        if self._eager:
            return "all"
        if (self._alone or is_still) and self._together.is_due(now_ns):
            return "all"
        if self._apart.is_due(now_ns):
            return "main" if self._alone or self._last == "worker" else "worker"
        if self._main_ns is not None and now_ns - self._main_ns >= MAIN_NS:
            return "main"
        waits = self._worker_ns is not None and now_ns - self._worker_ns >= WORKER_NS
        return "worker" if waits and not self._alone else None

    def took(self, turn: Turn, started_ns: int, cpu_s: float, *, nobody_else: bool = False) -> None:
        """A turn is over: when it began, and what it and reading it cost. `nobody_else`: it was a
        worker's, and there is none."""
        if turn != "worker":
            self._main_ns = started_ns
        if turn != "main" or nobody_else:
            self._worker_ns = started_ns
        if self._eager:
            self._eager -= 1
            return
        account = self._together if turn == "all" else self._apart
        account.read(started_ns, round(cpu_s * 1e9))
        if turn != "all":
            self._last = turn

    def renew(self, lost: int) -> None:
        """So many of the first chunks show nothing of the training, and are taken again."""
        self._eager = min(EAGER, self._eager + lost)


POLL_NS: Final = 250_000_000
LET_IN_NS: Final = 1_000_000_000
"""Where only ancestors may look into a process, its probe lets us in once we have subscribed: that
takes a turn of its publisher, which the first chunk did not wait for."""
AGAIN_NS: Final = 60_000_000_000
"""After a failure that is no refusal: the process may just have been starting, or have had no room
for another."""
OF_WORKERS: Final = "worker stacks"
"""What is missing where the main process may be read and its workers may not."""
OF_FILES: Final = "source lines"
"""…and where a file has other lines by now than those that run."""


class StacksSource:
    """Runs one py-spy at a time."""

    name: Final = "stacks"
    interval_ns = POLL_NS

    def __init__(
        self,
        pid: int,
        program: str | None = None,
        *,
        alone: bool = False,
        nearly_stalled: Callable[[], bool] = lambda: False,
        trains: Callable[[], int | None] = lambda: None,
        warm_since_ns: Callable[[], int | None] = lambda: None,
        proc: Path = PROC,
    ) -> None:
        """`alone`: there is no probe. `nearly_stalled`: nothing moves, so that all threads are
        wanted. `trains`: the kernel's id of the thread that trains, where the probe has seen it.
        `warm_since_ns`: when its warm-up ended, which takes a minute where a graph is compiled;
        None until then."""
        self._pid = pid
        self._trains = trains
        self._warm_since_ns = warm_since_ns
        self._first_ns: list[int] | None = []
        """When chunks began, until it is known which of them lie in the warm-up."""
        self._nearly_stalled = nearly_stalled
        self._proc = proc
        self._program = program or find_py_spy()
        self._turns = Turns(alone)
        self._wanted: Turn = "all"
        self._turn: Turn = "all"
        """The main process's also where a worker's was wanted and there is none to look at."""
        self._workers_refused = False
        self._workers = LoaderWorkers(pid)
        self._among: tuple[int, ...] = ()
        """Of a worker's turn: the workers that there are."""
        self._sampled_pid = pid
        self._running: PySpy | None = None
        self._pause_us = 0
        """Between two samples of the last one."""
        self._due_ns = self._started_ns = 0
        self._not_before_ns = 0
        self._refused = False
        self._failure = ""
        """Why there are none, until there are."""
        self._asked_again = False
        self._paths = ShortPaths(pid)
        self._lines = lines_of(pid, self._paths.file_of)
        self._structure = SourceStructure(self._lines)
        self._changed = 0
        """Files whose lines are not given, as was said last."""

    def open(self) -> None:
        """Nothing to do: the first chunk starts with the first poll."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """Start a chunk, or take in one that is done."""
        if self._refused:
            return []
        if self._program is None:
            self._refused = True
            return [self._missing(now_ns, "py-spy was not found", "pip install py-spy")]
        if self._running is None:
            self._look_at_warm_up()
            turn = self._turns.due(now_ns, self._nearly_stalled())
            if turn is not None and now_ns >= self._not_before_ns:
                self._running = self._start(self._program, turn, now_ns)
            return []
        ran = self._running.ended()
        if ran is None:
            return []
        self._pause_us = self._running.pause_us
        self._running = None
        return self._finished(now_ns, ran)

    def close(self) -> None:
        """End the chunk that runs."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def _look_at_warm_up(self) -> None:
        since_ns = self._warm_since_ns()
        if self._first_ns is not None and since_ns is not None:
            self._turns.renew(sum(began_ns < since_ns for began_ns in self._first_ns))
            self._first_ns = None

    def _start(self, program: str, turn: Turn, now_ns: int) -> PySpy:
        self._wanted = turn
        asks = turn == "worker" and not self._workers_refused
        self._among = self._workers.pids() if asks else ()
        if turn == "worker" and not self._among:
            turn = "main"
        self._turn = turn
        self._sampled_pid = self._workers.next_of(self._among) if self._among else self._pid
        self._due_ns, self._started_ns = now_ns, clock.now_ns()
        if self._first_ns is not None:
            self._first_ns = [*self._first_ns, self._started_ns][-EAGER:]
        seconds = SOON_S if self._turns.is_wanted_soon else CHUNK_S
        return PySpy(program, self._sampled_pid, subprocesses=turn == "all", seconds=seconds)

    def _finished(self, now_ns: int, ran: Ran) -> list[AnyObservation]:
        if ran.status != 0 and self._turn != "worker":
            return self._failed(now_ns, ran.stderr)
        before_ns = clock.own_thread_cpu_ns()
        seen = self._seen(now_ns, ran)
        ours_s = (clock.own_thread_cpu_ns() - before_ns) / 1e9
        nobody = self._turn != self._wanted
        self._turns.took(self._turn, self._due_ns, ran.cpu_s + ours_s, nobody_else=nobody)
        return seen

    def _seen(self, now_ns: int, ran: Ran) -> list[AnyObservation]:
        if ran.status != 0:
            return self._failed_at_worker(now_ns, ran.stderr)
        if len(ran.written) == MOST_TRACE_BYTES:
            self._refused = True
            return [self._missing(now_ns, "the process has too many threads to sample", "")]
        seen: list[AnyObservation] = [self._samples(now_ns, ran.written)]
        if self._failure:
            self._failure = ""
            seen.append(self._missing(now_ns, "", ""))
        return [*seen, *self._changed_files(now_ns)]

    def _changed_files(self, now_ns: int) -> list[Missing]:
        changed = list(self._lines.changed)
        if len(changed) == self._changed:
            return []
        self._changed = len(changed)
        more = f" and {len(changed) - 1} more" if changed[1:] else ""
        reason = f"{changed[0]}{more} changed since the run began, and not read"
        return [Missing(t_ns=now_ns, source=OF_FILES, reason=reason)]

    def _samples(self, now_ns: int, written: bytes) -> StacksSeen:
        trace = read_trace(written)
        moments_us = with_unseen(trace.moments_us, trace.ended_us, SAMPLES, self._pause_us)
        chunk = sampled(
            trace,
            moments_us,
            self._pid,
            self._paths.of,
            self._lines.of,
            self._structure.of,
            self._sampled_pid,
            self._trains(),
        )
        return StacksSeen(
            t_ns=now_ns,
            started_ns=self._started_ns,
            samples=sum(stack.count for stack in chunk.stacks if stack.role == "main"),
            stacks=chunk.stacks,
            moments_ms=chunk.moments_ms,
            seen=chunk.seen,
            among=self._among,
        )

    def _failed(self, now_ns: int, text: str) -> list[AnyObservation]:
        if not self._asked_again and is_not_permitted(text):
            self._asked_again = True
            self._not_before_ns = now_ns + LET_IN_NS
            return []
        if not still_runs(self._pid):
            self._refused = True
            return []  # the target has ended, which others report
        self._refused = is_refused(text)
        self._not_before_ns = now_ns + AGAIN_NS
        reason, fix = why_refused(text, ptrace_scope(self._proc))
        before, self._failure = self._failure, reason
        return [self._missing(now_ns, reason, fix)] if reason != before else []

    def _failed_at_worker(self, now_ns: int, text: str) -> list[AnyObservation]:
        if not is_not_permitted(text) or not still_runs(self._sampled_pid):
            return []  # a worker ends with its epoch
        self._workers_refused = True
        why, fix = no_stacks(ptrace_scope(self._proc), is_contained(text))
        reason = f"{why}: those of the workers are off"
        return [Missing(t_ns=now_ns, source=OF_WORKERS, reason=reason, fix=fix)]

    def _missing(self, now_ns: int, reason: str, fix: str) -> Missing:
        return Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix)


def find_py_spy() -> str | None:
    """py-spy beside this interpreter, else on the PATH, else where pip put it: `--user` and
    `--target` install programs into folders that are often not on the PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("py-spy") or next(filter(_is_program, _installed_py_spy()), None)


def _installed_py_spy() -> Iterator[str]:
    """Where the package's program may be: `--target` moves it away from where RECORD has it."""
    try:
        package = metadata.distribution("py-spy")
    except metadata.PackageNotFoundError:
        return
    for file in package.files or ():
        if file.name == "py-spy":
            yield str(Path(file.locate()).resolve())
    yield str(package.locate_file("bin/py-spy"))


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK)


def why_refused(text: str, scope: int | None) -> tuple[str, str]:
    """Why py-spy failed, by what it printed, and what mends it; `scope` is Yama's."""
    lowered = text.lower()
    if is_refused(text):
        reason, fix = no_stacks(scope, is_contained(text))
        return f"{reason}: charts work, stacks are off", fix
    if "failed to find python version" in lowered:
        return "py-spy does not know this Python", "pip install --upgrade py-spy"
    last = [line for line in text.splitlines() if line.strip()]
    return (f"py-spy failed: {last[0].strip()}" if last else "py-spy failed", "")


def is_refused(text: str) -> bool:
    """Whether the system does not let py-spy in, which only a person changes."""
    return "docker container" in text.lower() or is_not_permitted(text)


def is_contained(text: str) -> bool:
    """Whether a container forbids it, as it must be where root is refused."""
    return "docker container" in text.lower() or is_root()


def is_not_permitted(text: str) -> bool:
    """Whether the system does not let py-spy read the process."""
    lowered = text.lower()
    return "permission denied" in lowered or "eperm" in lowered
