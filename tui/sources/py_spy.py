"""One run of py-spy over a process, which it never pauses.

`record --nonblocking` for two seconds: it starts in 9 ms and ends by itself, so that it
does not outlive the monitor for long. `--idle` is needed: a main thread that waits for data is idle
to py-spy, and it is what we look for. The format is the one that keeps the time of each sample
(`chrome_trace`): it costs py-spy no more than the others, and us 3 ms a chunk (3 processes) to 12
ms (9 of them, 2 MB).
"""

import os
import resource
import subprocess
from dataclasses import dataclass
from typing import Final

RATE_HZ: Final = 10
CHUNK_S: Final = 2
SAMPLES: Final = RATE_HZ * CHUNK_S - 1
"""Of a chunk: py-spy counts them, not the time, and its last one ends it."""
PAUSE_US: Final = 1_000_000 // RATE_HZ
"""Between two samples, on average."""
MOST_SAID_BYTES: Final = 1024 * 1024
MOST_TRACE_BYTES: Final = 64 * 1024 * 1024
"""256 KB a process and chunk were seen: more than 200 processes."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run."""

    status: int
    said: str
    written: bytes
    cpu_s: float
    """CPU time of py-spy."""


class PySpy:
    """Runs from the moment it is made."""

    def __init__(self, program: str, pid: int, *, subprocesses: bool) -> None:
        """`subprocesses`: those of the process are looked at too."""
        self._said = bytearray()
        self._cpu_before_s = _children_cpu_s()
        self._trace_fd = os.memfd_create("gpuwatch-stacks")
        """Where py-spy writes: memory, as a pipe would hold 64 KB of it and make it wait for us."""
        command = [program, "record", "--nonblocking", "--idle", "--threads"]
        command += ["--rate", str(RATE_HZ), "--duration", str(CHUNK_S)]
        command += ["--subprocesses"] * subprocesses
        command += ["--format", "chrometrace", "--output", f"/dev/fd/{self._trace_fd}"]
        command += ["--pid", str(pid)]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(self._trace_fd,),
                start_new_session=True,  # Ctrl-C and Ctrl-Z on our terminal are not for it
            )
        except OSError:
            os.close(self._trace_fd)
            raise
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def ended(self) -> Ran | None:
        """Reads along; what came of it, once, when it has ended."""
        self._read()
        status = self.process.poll()
        if status is None:
            return None
        self._read()
        with os.fdopen(self._trace_fd, "rb") as file:
            file.seek(0)
            written = file.read(MOST_TRACE_BYTES)
        assert self.process.stdout is not None
        self.process.stdout.close()
        cpu_s = _children_cpu_s() - self._cpu_before_s
        return Ran(status, self._said.decode(errors="replace"), written, cpu_s)

    def kill(self) -> None:
        """End it. A py-spy that does not block can be killed at any moment."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self._trace_fd)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while len(self._said) < MOST_SAID_BYTES:
            part = self.process.stdout.read(65536)
            if not part:
                return
            self._said += part


def _children_cpu_s() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
