"""The training processes of this host that are exported: they come, and they go."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..clock import now_ns, own_cpu_ns
from ..discovery.command_lines import environ_of
from ..errors import DISTRIBUTION, GpuwatchError, version_of
from ..model.provider import SnapshotProvider
from ..model.snapshot import Snapshot
from .metrics import ExporterFacts, Family, PhaseNames, Watched, families, label_text

LOOK_EVERY_S: Final = 5.0
"""Between two looks for processes: each goes through all of the host's."""
ENDED_KEPT_S: Final = 300.0
"""For so long a process that has ended is exported as that: five scrapes a minute apart see it."""
MOST_TARGETS: Final = 64
"""Processes at once, each with a monitor of its own. A host of eight GPUs has eight to sixteen."""
FILES_OF_ONE: Final = 16
"""Descriptors that one takes: 15 of each of eight ranks."""
TRY_AGAIN_S: Final = 60.0
"""After a process could not be watched."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What `torchrun --standalone` calls a run: nobody knows it by that."""

Watch = Callable[[int], SnapshotProvider]
"""Watches a process. Raises GpuwatchError."""
JobOf = Callable[[int], tuple[str, ...]]


@dataclass
class _Target:
    """One process."""

    pid: int
    provider: SnapshotProvider
    run: str
    job: tuple[str, ...]
    watched: int
    """Whom its pid means: a rank may turn up below what was named."""
    phases: PhaseNames = field(default_factory=PhaseNames)
    ended_ns: int | None = None
    last: Snapshot | None = None
    """Of one whose provider was let go of."""


class HostWatch:
    """Watches what `find` finds. `look` is for one thread; what it holds may be read by others."""

    def __init__(
        self,
        find: Callable[[], Iterable[int]],
        watch: Watch,
        job_of: JobOf,
        report: Callable[[str], None],
        *,
        run: str | None = None,
        host: str = "",
        most: int = MOST_TARGETS,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        """`report` takes a line for a person; `run` names the training where that is given; `most`
        are watched at once."""
        self._find = find
        self._watch = watch
        self._job_of = job_of
        self._report = report
        self._run = run
        self._host = host
        self._most = most
        self._clock = clock
        self._targets: dict[int, _Target] = {}
        self._shown: tuple[_Target, ...] = ()
        """Replaced and never changed: other threads read it."""
        self._refused_ns: dict[int, int] = {}
        self._full = False
        self.failed = 0

    def look(self) -> int:
        """Take up what is new and let go of what has ended; returns how many still run."""
        now = self._clock()
        for target in list(self._targets.values()):
            self._check(target, now)
        for pid in self._find():
            if pid not in self._targets:
                self._take_up(pid, now)
        self._shown = tuple(self._targets.values())
        return sum(target.ended_ns is None for target in self._shown)

    def watched(self) -> list[Watched]:
        """All that is exported, as it stands."""
        return [
            Watched(snapshot, target.run, self._host, target.job, target.phases)
            for target in self._shown
            if (snapshot := _snapshot_of(target)) is not None
        ]

    def metrics(
        self, requests: Mapping[str, int] | None = None, dropped: Mapping[str, int] | None = None
    ) -> list[Family]:
        """All metrics as they stand, with what an exporter's server counts."""
        exporter = ExporterFacts(
            version=version_of(DISTRIBUTION),
            host=self._host,
            cpu_s=own_cpu_ns() / 1e9,
            requests=requests or {},
            dropped=dropped or {},
            failed_targets=self.failed,
        )
        return families(self.watched(), exporter)

    def close(self) -> None:
        """Let go of everything."""
        for target in self._targets.values():
            if target.last is None:
                target.provider.close()
        self._targets, self._shown = {}, ()

    def _check(self, target: _Target, now: int) -> None:
        if target.ended_ns is not None:
            if now - target.ended_ns > ENDED_KEPT_S * 1e9:
                del self._targets[target.pid]
            return
        try:
            snapshot = target.provider.snapshot()
        except Exception as error:  # a mistake of ours in one monitor: the others go on
            self._fail(target.pid, error, now)
            target.provider.close()
            del self._targets[target.pid]
            return
        if snapshot.pid != target.watched and not self._moved(target, snapshot.pid):
            return
        if snapshot.status.state == "ended":
            target.ended_ns = now
            target.last = snapshot
            target.provider.close()

    def _moved(self, target: _Target, pid: int) -> bool:
        """It watches another process now. Whether that is not watched already."""
        del self._targets[target.pid]
        if pid in self._targets:
            target.provider.close()
            return False
        target.pid = target.watched = pid
        target.job = self._job_of(pid)
        self._targets[pid] = target
        return True

    def _take_up(self, pid: int, now: int) -> None:
        refused_ns = self._refused_ns.get(pid)
        if refused_ns is not None and now - refused_ns < TRY_AGAIN_S * 1e9:
            return
        if not self._room():
            return
        provider: SnapshotProvider | None = None
        try:
            provider = self._watch(pid)
            provider.start()
            first = provider.snapshot()  # that is what begins it
            run = self._run or run_name(pid, first)
            target = _Target(pid, provider, run, self._job_of(pid), first.pid)
        except Exception as error:  # not even a thread may be left for it: the others go on
            self._fail(pid, error, now)
            if provider is not None:
                provider.close()
            return
        self._targets[pid] = target

    def _room(self) -> bool:
        """Room for one more; the first that ended goes for it."""
        if len(self._targets) < self._most:
            return True
        ended = [one for one in self._targets.values() if one.ended_ns is not None]
        if ended:
            del self._targets[min(ended, key=lambda one: one.ended_ns or 0).pid]
            return True
        if not self._full:
            self._full = True
            self._report(f"{self._most} processes are exported; the others on this host are not")
        return False

    def _fail(self, pid: int, error: Exception, now: int) -> None:
        ours = f"{type(error).__name__}: {error}"
        why = error.what if isinstance(error, GpuwatchError) else ours
        self.failed += 1
        self._refused_ns = {
            other: at for other, at in self._refused_ns.items() if now - at < TRY_AGAIN_S * 1e9
        }
        self._refused_ns[pid] = now
        self._report(f"process {pid} is not exported: {why}")


def _snapshot_of(target: _Target) -> Snapshot | None:
    if target.last is not None:
        return target.last
    try:
        return target.provider.snapshot()
    except Exception:  # `look` says it
        return None


def run_name(pid: int, snapshot: Snapshot) -> str:
    """What its launcher calls the training, the same on all hosts; else its script."""
    environ = environ_of(pid)
    if environ.get("SLURM_JOB_ID"):
        return f"slurm-{environ['SLURM_JOB_ID']}"
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    made_up = elastic in ("", "none") or _UUID.fullmatch(elastic) is not None
    return snapshot.script if made_up else elastic


def host_name() -> str:
    """As dcgm-exporter has it: the node's name where Kubernetes gives it, else the host's."""
    return label_text(os.environ.get("NODE_NAME") or os.uname().nodename)
