"""Python stacks of the target and its workers, by py-spy, without ever pausing them.

The recipe of attach.md 1: `record --nonblocking` in short chunks (one process a chunk: a chunk
starts in 9 ms). Each ends by itself after its two seconds, so none outlives the monitor for long.
`--idle` is needed: a main thread that waits for data is idle to py-spy, and it is what we look for.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tui.observations import AnyObservation, Missing, StacksSeen
from tui.sources.source_lines import SourceLines, roots_of
from tui.sources.stack_lines import parse

POLL_NS: Final = 250_000_000
RATE_HZ: Final = 10
CHUNK_S: Final = 2
BUDGET: Final = 0.02
"""Of a core, for the target and its workers together (1 % each): a chunk of one worker costs
0.07 s here, one of eight 0.3 s, so chunks are started less often the more they cost."""
EAGER_CHUNKS: Final = 3
"""The first follow one another at once: a verdict is wanted within ten seconds."""
LIMIT_BYTES: Final = 4 * 1024 * 1024


class StacksSource:
    """Runs one py-spy at a time."""

    name = "stacks"
    interval_ns = POLL_NS

    def __init__(self, pid: int, program: str | None = None) -> None:
        self._pid = pid
        self._program = program or find_py_spy()
        self._process: subprocess.Popen[bytes] | None = None
        self._output = bytearray()
        self._started_ns = 0
        self._not_before_ns = 0
        self._chunks = 0
        self._refused = False
        self._lines = SourceLines(roots_of(pid))

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

    def _start(self, now_ns: int) -> None:
        assert self._program is not None
        self._started_ns = now_ns
        self._output.clear()
        self._cpu_before_s = _children_cpu_s()
        command = [self._program, "record", "--nonblocking", "--idle", "--threads"]
        command += ["--subprocesses", "--rate", str(RATE_HZ), "--duration", str(CHUNK_S)]
        command += ["--format", "raw", "--output", "/dev/stdout", "--pid", str(self._pid)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C and Ctrl-Z on our terminal are not for it
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while len(self._output) < LIMIT_BYTES:
            part = self._process.stdout.read(65536)
            if not part:
                return
            self._output += part

    def _finished(self, now_ns: int) -> list[AnyObservation]:
        assert self._process is not None
        status = self._process.returncode
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        text = self._output.decode(errors="replace")
        if status != 0:
            return self._failed(now_ns, text)
        self._chunks += 1
        spent_s = _children_cpu_s() - self._cpu_before_s
        if self._chunks >= EAGER_CHUNKS:
            self._not_before_ns = self._started_ns + round(spent_s / BUDGET * 1e9)
        chunk = parse(text, self._pid, self._lines.of)
        return [
            StacksSeen(
                t_ns=now_ns,
                started_ns=self._started_ns,
                samples=chunk.moments,
                stacks=chunk.stacks,
            )
        ]

    def _failed(self, now_ns: int, text: str) -> list[AnyObservation]:
        self._refused = True
        if not Path(f"/proc/{self._pid}").exists():
            return []  # the end of the target is told by others
        reason, fix = why_refused(text)
        return [self._missing(now_ns, reason, fix)]

    def _missing(self, now_ns: int, reason: str, fix: str) -> Missing:
        return Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix)


def find_py_spy() -> str | None:
    """py-spy beside this interpreter, else on the PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def why_refused(text: str) -> tuple[str, str]:
    """What py-spy's complaint means, and what a person can do (texts of attach.md 1)."""
    lowered = text.lower()
    if "docker container" in lowered:
        return "this container may not look into processes", "start it with --cap-add=SYS_PTRACE"
    if "permission denied" in lowered or "eperm" in lowered:
        return (
            "this user may not look into the process (ptrace is restricted)",
            "sudo sysctl kernel.yama.ptrace_scope=0, or run gpuwatch as root",
        )
    if "failed to find python version" in lowered:
        return "py-spy does not know this Python", "pip install --upgrade py-spy"
    last = [line for line in text.splitlines() if line.strip()]
    return (f"py-spy failed: {last[0].strip()}" if last else "py-spy failed", "")


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system
