"""Python stacks of the target and its workers, by py-spy, without ever pausing them.

The recipe of attach.md 1: `record --nonblocking` in short chunks (one process a chunk: a chunk
starts in 9 ms). Each ends by itself after its two seconds, so none outlives the monitor for long.
`--idle` is needed: a main thread that waits for data is idle to py-spy, and it is what we look for.
The format is the one that keeps the time of each sample (`chrome_trace`): it costs py-spy no more
than the others, and us 3 ms a chunk (3 processes) to 12 ms (9 of them, 2 MB).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tui import clock
from tui.observations import AnyObservation, Missing, StacksSeen
from tui.privilege import PROC, is_root, no_stacks, ptrace_scope
from tui.sources.chrome_trace import read_trace
from tui.sources.sample_times import with_unseen
from tui.sources.short_paths import ShortPaths
from tui.sources.source_lines import SourceLines, roots_of
from tui.sources.stack_samples import sampled

POLL_NS: Final = 250_000_000
RATE_HZ: Final = 10
CHUNK_S: Final = 2
SAMPLES: Final = RATE_HZ * CHUNK_S - 1
"""Of a chunk: py-spy counts them, not the time, and its last one ends it."""
PAUSE_US: Final = 1_000_000 // RATE_HZ
"""Between two samples, on average."""
BUDGET: Final = 0.02
"""Of a core, for the target and its workers together (1 % each): a chunk of one worker costs
0.07 s here, one of eight 0.3 s, so chunks are started less often the more they cost."""
EAGER_CHUNKS: Final = 3
"""The first follow one another at once: a verdict is wanted within ten seconds."""
LET_IN_NS: Final = 1_000_000_000
"""Where only ancestors may look into a process, its probe lets us in once it has heard of us: that
takes a turn of its publisher, which the first chunk did not wait for."""
MOST_SAID_BYTES: Final = 1024 * 1024
MOST_TRACE_BYTES: Final = 64 * 1024 * 1024
"""256 KB a process and chunk were seen: more than 200 processes."""


class StacksSource:
    """Runs one py-spy at a time."""

    name = "stacks"
    interval_ns = POLL_NS

    def __init__(
        self, pid: int, program: str | None = None, *, alone: bool = False, proc: Path = PROC
    ) -> None:
        """`alone`: nothing else tells of the main thread, so it is sampled between the chunks of
        all processes too, for as much again."""
        self._pid = pid
        self._alone = alone
        self._proc = proc
        self._of_all = True
        """The chunk that runs is one of all processes."""
        self._all_not_before_ns = 0
        self._program = program or find_py_spy()
        self._process: subprocess.Popen[bytes] | None = None
        self._said = bytearray()
        self._trace_fd: int | None = None
        """Where py-spy writes: memory, as a pipe would hold 64 KB of it and make it wait for us."""
        self._started_ns = 0
        self._not_before_ns = 0
        self._chunks = 0
        self._refused = False
        self._asked_again = False
        self._lines = SourceLines(roots_of(pid))
        self._paths = ShortPaths(pid)

    def open(self) -> None:
        """Nothing to do: the first chunk starts with the first poll."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """Start a chunk, or take in one that is done."""
        if self._refused:
            return []
        if self._program is None:
            self._refused = True
            return [self._missing(now_ns, "py-spy was not found", "pip install py-spy")]
        if self._process is None:
            if now_ns >= self._not_before_ns:
                self._start(now_ns)
            return []
        self._read()
        if self._process.poll() is None:
            return []
        self._read()
        return self._finished(now_ns)

    def close(self) -> None:
        """End the chunk that runs. A py-spy that does not block can be killed at any moment."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._trace_fd is not None:
            os.close(self._trace_fd)
            self._trace_fd = None

    def _start(self, now_ns: int) -> None:
        assert self._program is not None
        self._said.clear()
        self._cpu_before_s = _children_cpu_s()
        trace_fd = self._trace_fd = os.memfd_create("gpuwatch-stacks")
        command = [self._program, "record", "--nonblocking", "--idle", "--threads"]
        command += ["--rate", str(RATE_HZ), "--duration", str(CHUNK_S)]
        self._of_all = not self._alone or now_ns >= self._all_not_before_ns
        if self._of_all:
            command.append("--subprocesses")
        command += ["--format", "chrometrace", "--output", f"/dev/fd/{trace_fd}"]
        command += ["--pid", str(self._pid)]
        self._due_ns, self._started_ns = now_ns, clock.now_ns()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(trace_fd,),
            start_new_session=True,  # Ctrl-C and Ctrl-Z on our terminal are not for it
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while len(self._said) < MOST_SAID_BYTES:
            part = self._process.stdout.read(65536)
            if not part:
                return
            self._said += part

    def _trace(self) -> bytes:
        """What py-spy wrote; given up with this call."""
        assert self._trace_fd is not None
        trace_fd, self._trace_fd = self._trace_fd, None
        with os.fdopen(trace_fd, "rb") as file:
            file.seek(0)
            return file.read(MOST_TRACE_BYTES)

    def _finished(self, now_ns: int) -> list[AnyObservation]:
        assert self._process is not None
        status = self._process.returncode
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        written = self._trace()
        if status != 0:
            return self._failed(now_ns, self._said.decode(errors="replace"))
        if len(written) == MOST_TRACE_BYTES:
            self._refused = True
            return [self._missing(now_ns, "the process has too many threads to sample", "")]
        self._chunks += 1
        before_ns = clock.own_thread_cpu_ns()
        seen = self._samples(now_ns, written)
        ours_s = (clock.own_thread_cpu_ns() - before_ns) / 1e9
        spent_s = _children_cpu_s() - self._cpu_before_s + ours_s
        if self._chunks >= EAGER_CHUNKS:
            free_ns = self._due_ns + round(spent_s / BUDGET * 1e9)
            if self._alone and self._of_all:
                self._all_not_before_ns = free_ns
            else:
                self._not_before_ns = free_ns
        return [seen]

    def _samples(self, now_ns: int, written: bytes) -> StacksSeen:
        trace = read_trace(written)
        moments_us = with_unseen(trace.moments_us, trace.ended_us, SAMPLES, PAUSE_US)
        chunk = sampled(trace, moments_us, self._pid, self._paths.of, self._lines.of)
        return StacksSeen(
            t_ns=now_ns,
            started_ns=self._started_ns,
            samples=sum(stack.count for stack in chunk.stacks if stack.role == "main"),
            stacks=chunk.stacks,
            moments_ms=chunk.moments_ms,
            seen=chunk.seen,
        )

    def _failed(self, now_ns: int, text: str) -> list[AnyObservation]:
        if not self._asked_again and is_not_permitted(text):
            self._asked_again = True
            self._not_before_ns = now_ns + LET_IN_NS
            return []
        self._refused = True
        if not Path(f"/proc/{self._pid}").exists():
            return []  # the end of the target is told by others
        reason, fix = why_refused(text, ptrace_scope(self._proc))
        return [self._missing(now_ns, reason, fix)]

    def _missing(self, now_ns: int, reason: str, fix: str) -> Missing:
        return Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix)


def find_py_spy() -> str | None:
    """py-spy beside this interpreter, else on the PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def why_refused(text: str, scope: int | None) -> tuple[str, str]:
    """What py-spy's complaint means, and what a person can do (texts of attach.md 1); `scope` is
    Yama's."""
    lowered = text.lower()
    contained = "docker container" in lowered
    if contained or is_not_permitted(text):
        reason, fix = no_stacks(scope, contained or is_root())
        return f"{reason}: charts work, stacks are off", fix
    if "failed to find python version" in lowered:
        return "py-spy does not know this Python", "pip install --upgrade py-spy"
    last = [line for line in text.splitlines() if line.strip()]
    return (f"py-spy failed: {last[0].strip()}" if last else "py-spy failed", "")


def is_not_permitted(text: str) -> bool:
    """Whether py-spy complains that the system does not let it look."""
    lowered = text.lower()
    return "permission denied" in lowered or "eperm" in lowered


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
