"""The ranks of a job are read once, whichever and however many of them are watched.

A monitor of one rank reads the pages of all, and asks their flight recorders: 35 to 88 ms of each
rank's training thread on H200s. Eight monitors that each did would cost eight times that.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final

from ..messages import Hello
from ..model.observations import AnyObservation
from ..session.collector import Source
from ..sources.launcher import job_of
from ..sources.ranks import SAMPLE_NS, RanksSource

MOST_UNREAD: Final = 64
"""Observations that wait for a monitor: 30 s of them, then the oldest are lost."""

Reads = Callable[[int, Hello], Source]


class SharedRanks:
    """Makes the source of each monitor's ranks. Called from many threads."""

    def __init__(self, reads: Reads = RanksSource) -> None:
        self._reads = reads
        self._lock = Lock()
        self._jobs: dict[tuple[str, ...], _Job] = {}

    def source(self, pid: int, hello: Hello) -> Source:
        """For the monitor of this process: reads for all of its job, or is handed what another
        read."""
        key = (*job_of(pid), str(hello.world_size))
        with self._lock:
            self._jobs = {name: job for name, job in self._jobs.items() if job.shares}
            job = self._jobs.setdefault(key, _Job())
            share = _Share(job, pid, hello, self._reads)
            job.shares.append(share)
            return share


class _Job:
    """Who reads for whom."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.reader: _Share | None = None
        self.shares: list[_Share] = []


class _Share:
    """One monitor's. Its reader, where it is the one that reads, is opened, asked and closed on
    that monitor's own thread."""

    name: Final = "ranks"
    interval_ns = SAMPLE_NS

    def __init__(self, job: _Job, pid: int, hello: Hello, reads: Reads) -> None:
        self._job = job
        self._pid = pid
        self._hello = hello
        self._reads = reads
        self._source: Source | None = None
        self._handed: deque[AnyObservation] = deque(maxlen=MOST_UNREAD)

    def open(self) -> None:
        """Nothing: who reads is decided at the first look."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """What was read, by whomever."""
        with self._job.lock:
            if self._job.reader is None:
                self._job.reader = self
            reads = self._job.reader is self
        if not reads:
            return [self._handed.popleft() for _ in range(len(self._handed))]
        if self._source is None:
            self._source = self._reads(self._pid, self._hello)
            self._source.open()
        seen = self._source.poll(now_ns)
        with self._job.lock:
            for other in self._job.shares:
                if other is not self:
                    other._handed.extend(seen)
        return seen

    def close(self) -> None:
        """Let go; another monitor of the job reads from now on."""
        with self._job.lock:
            if self._job.reader is self:
                self._job.reader = None
            if self in self._job.shares:
                self._job.shares.remove(self)
        if self._source is not None:
            self._source.close()
