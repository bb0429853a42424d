"""The target's processes: CPU, memory, I/O and state, by psutil, once a second."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from msgspec import structs

from .. import clock
from ..discovery.command_lines import is_worker, text_of
from ..discovery.targets import stat_fields
from ..model.observations import AnyObservation, ProcessesSeen, ProcessRole, ProcessUse, TargetEnded
from .launcher import Launcher
from .oom import OomKill, OomWatch
from .system import (
    NO_USE,
    UNKNOWN,
    Descendants,
    KernelUse,
    MemoryLimit,
    Pace,
    QuotaWatch,
    ThreadTimes,
    cores_busy_percent,
    cores_of,
    kernel_use,
    memory_of,
    others_percent,
    thread_times,
)


def resident_file_bytes(pid: int) -> int | None:
    """Pages of files in the resident memory; None where the kernel does not report them."""
    return _figures(f"/proc/{pid}/status").get("RssFile")


def proportional_bytes(pid: int) -> tuple[int | None, int | None]:
    """The proportional set size, and the pages of files in it. Walks the page table."""
    figures = _figures(f"/proc/{pid}/smaps_rollup")
    return figures.get("Pss"), figures.get("Pss_File")


def _figures(path: str) -> dict[str, int]:
    """The lines in kB, as bytes."""
    figures: dict[str, int] = {}
    try:
        with open(path, errors="replace") as lines:  # the name of the process is among them
            for line in lines:
                name, _, figure = line.partition(":")
                if figure.endswith(" kB\n"):
                    figures[name] = int(figure.split()[0]) * 1024
    except OSError:
        return {}
    return figures


# The threads of a training process that pin batches, which torch names.

NAME: Final = b"pt_data_pin"
FIND_NS: Final = 10_000_000_000
"""Between two searches: each reads the name of every thread, 10 us apiece."""


class PinThreads:
    """What they use of a core. A loader that begins again has a new one."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = proc
        self._found_ns: int | None = None
        self._threads: list[int] = []
        self._before: tuple[int, dict[int, int]] | None = None

    def percent(self, now_ns: int) -> float | None:
        """Of one core since the last call, all of them together; None without one, and where there
        was none before."""
        if self._found_ns is None or now_ns - self._found_ns >= FIND_NS:
            self._found_ns, self._threads = now_ns, self._find()
        ran = {
            thread: times.ran_ns
            for thread in self._threads
            if (times := thread_times(self._pid, self._proc, thread)).ran_ns is not None
        }
        before, self._before = self._before, (now_ns, ran)
        if before is None or now_ns <= before[0]:
            return None
        used = [ns - before[1][thread] for thread, ns in ran.items() if thread in before[1]]
        return 100 * sum(used) / (now_ns - before[0]) if used else None

    def _find(self) -> list[int]:
        found: list[int] = []
        try:
            tasks = list((self._proc / str(self._pid) / "task").iterdir())
        except OSError:
            return found
        for task in tasks:
            try:
                if (task / "comm").read_bytes().strip() == NAME:
                    found.append(int(task.name))
            except OSError:
                continue  # it has just ended
        return found


READ_NS: Final = 1_000_000_000
PSS_NS: Final = 10_000_000_000
"""Between two readings of the workers' proportional set sizes at least."""
PSS_SHARE: Final = 0.001
"""Of a core for them at most: each walks a page table, 6 ms of a small worker, and many times that
of one that holds gigabytes."""
DEAD: Final = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
LETTER: Final = {
    psutil.STATUS_RUNNING: "R",
    psutil.STATUS_SLEEPING: "S",
    psutil.STATUS_IDLE: "S",
    psutil.STATUS_DISK_SLEEP: "D",
    psutil.STATUS_STOPPED: "T",
    psutil.STATUS_TRACING_STOP: "T",
    psutil.STATUS_ZOMBIE: "Z",
}


@dataclass(slots=True)
class _Before:
    """Counters of one process at the last look."""

    process: psutil.Process
    t_ns: int
    cpu_s: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    pss_bytes: int | None = None
    pss_file_bytes: int | None = None
    thread: ThreadTimes = UNKNOWN
    kernel: KernelUse = NO_USE
    tree_s: float | None = None
    """CPU time of it and of all the children that it has waited for."""
    tree_percent: float | None = None


class ProcessSource:
    """Reads the target, its workers and its other children, and who started it. It ends with the
    target."""

    name: Final = "process"
    interval_ns = READ_NS

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._target: psutil.Process | None = None
        """None where it has ended before it was looked at."""
        self._before: dict[int, _Before] = {}
        self._looks = 0
        self._ended = False
        self._quota = QuotaWatch(pid)
        self._pin = PinThreads(pid)
        self._pss = Pace(PSS_NS, PSS_SHARE)
        self._below = Descendants(pid)

    def open(self) -> None:
        """Remember who the target is: its pid can be given to somebody else. One that has ended by
        now is reported by the first poll."""
        try:
            self._target = psutil.Process(self._pid)
        except psutil.NoSuchProcess:
            self._target = None
            return
        self._launcher = Launcher(self._target)
        self._oom = OomWatch(self._pid)
        with suppress(ProcessLookupError):
            cores_busy_percent(self._pid)

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """One look, or how the target ended."""
        if self._ended:
            return []
        seen: ProcessesSeen | None = None
        if (target := self._target) is not None:
            try:
                seen = self._look(target, now_ns) if _lives(target) else None
            except (psutil.NoSuchProcess, OSError):
                if _lives(target):
                    raise  # it is not that the target has ended while it was looked at
        if seen is None:
            self._ended = True
            ended = how_it_ended(self._pid, now_ns)
            return [ended if target is None else with_memory(ended, self._oom.killed())]
        self._oom.look()
        return [seen]

    def close(self) -> None:
        """Nothing is held."""

    def _look(self, target: psutil.Process, now_ns: int) -> ProcessesSeen:
        children = self._below.look()
        around = self._around(now_ns)
        alive = {self._pid, *(child.pid for child in (*children, *around))}
        self._before = {pid: before for pid, before in self._before.items() if pid in alive}
        roles = {child: _role(child, target) for child in children}
        self._weigh([child for child, role in roles.items() if role == "worker"], now_ns)
        uses = [self._use(target, "main", now_ns)]
        for child, role in roles.items():
            with suppress(psutil.Error):  # it may end while we look
                uses.append(self._use(child, role, now_ns))
        beside: list[ProcessUse] = []
        for process, rank in around.items():
            with suppress(psutil.Error):
                role = "launcher" if rank is None else "rank"
                beside.append(structs.replace(self._use(process, role, now_ns), rank=rank))
        self._looks += 1
        busy = cores_busy_percent(self._pid)
        own = [self._before[use.pid].tree_percent for use in uses]
        machine = psutil.virtual_memory()
        limit = memory_of(self._pid, MemoryLimit(machine.total, machine.available))
        return ProcessesSeen(
            t_ns=now_ns,
            processes=tuple(uses),
            cores=cores_of(self._pid),
            machine_cpu_percent=busy if self._looks > 1 else None,
            memory_total_bytes=limit.total_bytes,
            memory_available_bytes=limit.available_bytes,
            throttled_percent=self._quota.percent(now_ns),
            others_cpu_percent=others_percent(self._pid, busy, own),
            around=tuple(beside),
        )

    def _weigh(self, workers: list[psutil.Process], now_ns: int) -> None:
        """Read the workers' proportional set sizes, if it is time to."""
        if not workers or not self._pss.is_due(now_ns):
            return
        began_ns = clock.own_thread_cpu_ns()
        for worker in workers:
            before = self._before.setdefault(worker.pid, _Before(worker, now_ns))
            before.pss_bytes, before.pss_file_bytes = proportional_bytes(worker.pid)
        self._pss.read(now_ns, clock.own_thread_cpu_ns() - began_ns)

    def _around(self, now_ns: int) -> dict[psutil.Process, int | None]:
        """The launcher first, then the other ranks with their numbers."""
        self._launcher.look(now_ns)
        launcher = self._launcher.process
        found: dict[psutil.Process, int | None] = {} if launcher is None else {launcher: None}
        found.update({rank.process: rank.number for rank in self._launcher.ranks})
        return found

    def _use(self, process: psutil.Process, role: ProcessRole, now_ns: int) -> ProcessUse:
        before = self._before.setdefault(process.pid, _Before(process, now_ns))
        with process.oneshot():
            times = process.cpu_times()
            cpu_s = times.user + times.system
            read_bytes, written_bytes = _io(process)
            tree_s = cpu_s + times.children_user + times.children_system
            thread = thread_times(process.pid)
            kernel = kernel_use(process.pid) if role == "main" else before.kernel
            span_s = (now_ns - before.t_ns) / 1e9
            before.tree_percent = _rate(tree_s, before.tree_s, span_s, 100.0)
            file_bytes = before.pss_file_bytes
            if role == "main":
                file_bytes = resident_file_bytes(process.pid)
            use = ProcessUse(
                pid=process.pid,
                role=role,
                name=text_of(process.name()),
                cpu_percent=_rate(cpu_s, before.cpu_s, span_s, 100.0),
                rss_bytes=process.memory_info().rss,
                pss_bytes=before.pss_bytes,
                read_bytes_s=_rate(read_bytes, before.read_bytes, span_s),
                write_bytes_s=_rate(written_bytes, before.written_bytes, span_s),
                status=LETTER.get(process.status(), "?"),
                threads=process.num_threads(),
                run_delay_percent=_rate(
                    thread.delay_ns, before.thread.delay_ns, span_s, 100.0 / 1e9
                ),
                thread_cpu_percent=_rate(thread.ran_ns, before.thread.ran_ns, span_s, 100.0 / 1e9),
                file_bytes=file_bytes,
                parent=process.ppid(),
                pin_cpu_percent=self._pin.percent(now_ns) if role == "main" else None,
                in_kernel_percent=_rate(
                    kernel.in_kernel_s, before.kernel.in_kernel_s, span_s, 100.0
                ),
                page_faults_s=_rate(kernel.page_faults, before.kernel.page_faults, span_s),
            )
        before.t_ns, before.cpu_s, before.tree_s = now_ns, cpu_s, tree_s
        before.thread, before.kernel = thread, kernel
        before.read_bytes, before.written_bytes = read_bytes, written_bytes
        return use


def _lives(process: psutil.Process) -> bool:
    """Not so a zombie."""
    try:
        return process.is_running() and process.status() not in DEAD
    except psutil.NoSuchProcess:
        return False


def _role(child: psutil.Process, target: psutil.Process) -> ProcessRole:
    with suppress(psutil.Error):
        return "worker" if is_worker(child, target) else "child"
    return "child"


EXIT_STATUS: Final = 49
"""Of the fields behind the name in /proc/PID/stat: as `wait` gives it, of a zombie."""


def how_it_ended(pid: int, now_ns: int) -> TargetEnded:
    """With its exit status, if its parent has not read that yet and this user may: the kernel shows
    others 0."""
    try:
        folder = Path(f"/proc/{pid}")
        fields = stat_fields(folder)
        readable = folder.stat().st_uid == os.geteuid()
    except OSError:
        return TargetEnded(t_ns=now_ns)
    if fields[0] != b"Z" or not readable:
        return TargetEnded(t_ns=now_ns)
    status = int(fields[EXIT_STATUS])
    number = status & 0x7F
    return TargetEnded(t_ns=now_ns, code=None if number else status >> 8, signal=number or None)


def with_memory(ended: TargetEnded, kill: OomKill | None) -> TargetEnded:
    """The end with what was full. One that is no failure is none of the kernel's doing."""
    if kill is None or ended.code == 0 or ended.signal not in (None, signal.SIGKILL):
        return ended
    return structs.replace(ended, full=kill.full, limit_bytes=kill.limit_bytes)


def _io(process: psutil.Process) -> tuple[int | None, int | None]:
    """Bytes through read and write calls. Not `read_bytes`, which is the disk's alone: a network
    file system and the page cache do not show there."""
    try:
        counters = process.io_counters()
    except (psutil.AccessDenied, NotImplementedError, FileNotFoundError):
        return None, None
    return counters.read_chars, counters.write_chars


def _rate(
    now: float | None, before: float | None, span_s: float, scale: float = 1.0
) -> float | None:
    if now is None or before is None or span_s <= 0:
        return None
    return max(0.0, now - before) / span_s * scale
