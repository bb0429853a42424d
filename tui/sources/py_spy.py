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
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

# py-spy's Chrome trace, back into samples with their times.

SAME_MOMENT_US: Final = 8_000
"""py-spy writes the threads of a moment down one after the other, in 0.3 ms (3 processes) to 5 ms
(9, on two busy cores), each less than 1 ms after the last."""


class CodePlace(msgspec.Struct):
    """Of a frame; "" and 0 for the frames that name processes and threads."""

    filename: str
    line: int


class FrameEvent(msgspec.Struct):
    """A frame begins or ends."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: int
    args: CodePlace


Frame = tuple[str, str, int]
"""Function, file, line."""
_EVENTS: Final = msgspec.json.Decoder(list[FrameEvent])


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread's samples."""

    at_us: tuple[int, ...]
    """When its stack was another than before."""
    stacks: tuple[tuple[Frame, ...], ...]
    """What it was from then on, outermost first, after the frames that name process and thread."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What one run of py-spy saw."""

    moments_us: tuple[int, ...]
    """When it sampled, as far as any stack shows, since it began."""
    ended_us: int
    threads: tuple[Thread, ...]


def read_trace(data: bytes) -> Trace:
    """Raises msgspec.DecodeError for anything else than a trace."""
    events = _EVENTS.decode(data)
    standing: dict[int, list[Frame]] = {}
    seen: dict[tuple[int, int], list[tuple[int, tuple[Frame, ...]]]] = {}
    moments: list[int] = []
    written_us = -SAME_MOMENT_US
    at_once: set[tuple[int, int]] = set()
    for tid, pid, ts, run in _runs(events):
        stack = standing.setdefault(tid, [])
        for event in run:
            if event.ph == "B":
                stack.append((event.name, event.args.filename, event.args.line))
            elif stack:
                stack.pop()
        if not stack:
            continue  # the end of the trace
        thread = (pid, tid)
        if thread in at_once or ts - written_us >= SAME_MOMENT_US:
            moments.append(ts)
            at_once.clear()
        at_once.add(thread)
        written_us = ts
        seen.setdefault(thread, []).append((moments[-1], tuple(stack)))
    threads = tuple(
        Thread(tuple(at for at, _ in rows), tuple(stack for _, stack in rows))
        for rows in seen.values()
    )
    return Trace(tuple(moments), events[-1].ts if events else 0, threads)


def _runs(events: Sequence[FrameEvent]) -> list[tuple[int, int, int, list[FrameEvent]]]:
    """The events that turn one sample of a thread into its next: frames end, then frames begin."""
    runs: list[tuple[int, int, int, list[FrameEvent]]] = []
    key, began = (0, 0, -1), False
    for event in events:
        own = (event.tid, event.pid, event.ts)
        begins = event.ph == "B"
        if own != key or (began and not begins):
            runs.append((*own, []))
            key = own
        runs[-1][3].append(event)
        began = begins
    return runs


RATE_HZ: Final = 10
CHUNK_S: Final = 2
SAMPLES: Final = RATE_HZ * CHUNK_S - 1
"""Of a chunk: py-spy counts them, not the time, and its last one ends it."""
SOON_S: Final = 1
"""A chunk that is wanted soon has as many samples in so long: most first verdicts wait for the
first samples."""
MOST_STDERR_BYTES: Final = 1024 * 1024
MOST_TRACE_BYTES: Final = 64 * 1024 * 1024
"""256 KB a process and chunk were seen: more than 200 processes."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run."""

    status: int
    stderr: str
    written: bytes
    cpu_s: float
    """CPU time of py-spy."""


class PySpy:
    """Runs from the moment it is made."""

    def __init__(
        self, program: str, pid: int, *, subprocesses: bool, seconds: int = CHUNK_S
    ) -> None:
        """`subprocesses`: those of the process are sampled too. `seconds`: it is as long, whole
        ones, and has `SAMPLES` whatever that is."""
        rate_hz = (SAMPLES + 1) // seconds
        self.pause_us: Final = 1_000_000 // rate_hz
        """Between two samples, on average."""
        self._stderr = bytearray()
        self._cpu_before_s = _children_cpu_s()
        self._trace_fd = os.memfd_create("gpuwatch-stacks")
        """Where py-spy writes: memory, as a pipe would hold 64 KB of it and make it wait for us."""
        command = [program, "record", "--nonblocking", "--idle", "--threads"]
        command += ["--rate", str(rate_hz), "--duration", str(seconds)]
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
        return Ran(status, self._stderr.decode(errors="replace"), written, cpu_s)

    def kill(self) -> None:
        """End it. A py-spy that does not block can be killed at any moment."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self._trace_fd)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while len(self._stderr) < MOST_STDERR_BYTES:
            part = self.process.stdout.read(65536)
            if not part:
                return
            self._stderr += part


def _children_cpu_s() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def with_unseen(
    seen_us: Sequence[int], ended_us: int, count: int, pause_us: int
) -> tuple[int, ...]:
    """The moments of all `count` samples: those that were seen, and the others spread over the
    pauses between them, of which a longer one gets more.

    In an unseen sample every stack was still as at the seen moment before. After a stack changes,
    the next sample is a seen one and comes `pause_us` later on average, so unseen ones lie earlier
    than that. The last pause ends with a sample too, of which nothing is known.
    """
    unseen = count - len(seen_us)
    if unseen <= 0 or not seen_us:
        return tuple(seen_us)
    ends_us = [*(max(0, at - pause_us) for at in seen_us[1:]), ended_us]
    rooms = [max(0, end - start) for start, end in zip(seen_us, ends_us, strict=True)]
    if not any(rooms):
        rooms = [1] * len(rooms)
    moments = list(seen_us)
    reached, placed = 0, 0
    for start, room in zip(seen_us, rooms, strict=True):
        reached += room
        own = round(unseen * reached / sum(rooms)) - placed
        placed += own
        moments += [start + room * (i + 1) // (own + 1) for i in range(own)]
    return tuple(sorted(moments))


def standing_at(changes_us: Sequence[int], moment_us: int) -> int | None:
    """Index of the last change at or before a moment; None before the first."""
    index = bisect_right(changes_us, moment_us) - 1
    return index if index >= 0 else None
