"""Hand-made observations: what a probe would have shown."""

from typing import Any

from gpuwatch.probe.wire import marks
from gpuwatch.tui.messages import Hello, Loader
from gpuwatch.tui.model.observations import Delivered, ProcessesSeen, ProcessRole, ProcessUse
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.steps import Batch, Open, Step
from gpuwatch.tui.verdict.findings import Finding, Verdict
from gpuwatch.tui.verdict.history import NO_HISTORY, Held, VerdictTimeline
from gpuwatch.tui.verdict.memory.trends import MemoryTrend
from gpuwatch.tui.verdict.window import StepWindow, Window

MS = 1_000_000
S = 1_000_000_000

HELLO = Hello(
    schema=1,
    pid=48213,
    start_ticks=77,
    started_unix=1_700_000_000.0,
    argv=["/home/ada/train.py", "--epochs", "3"],
    cwd="/home/ada",
    executable="/usr/bin/python3",
    python="3.12.4",
    torch="2.13.0",
    probe="0.1.0",
    host="loom",
    uid=1000,
    rank=None,
    local_rank=None,
    world_size=None,
    restart_count=None,
    endpoint="ipc:///tmp/x",
    fault=None,
)


def step(number: int, start_ms: float, **parts: Any) -> Step:
    """A step whose `*_ms` parts follow each other; `count`, `samples` and so on as they are."""
    ns = {name[:-3]: round(ms * MS) for name, ms in parts.items() if name.endswith("_ms")}
    rest = {name: value for name, value in parts.items() if not name.endswith("_ms")}
    phases = rest.pop("phases", {})
    start_ns = round(start_ms * MS)
    wall_ns = rest.pop("wall_ns", sum(ns.values()) + sum(phases.values()))
    fields: dict[str, Any] = {
        "count": 1,
        "fetches": 1,
        "backwards": 1,
        "optimizer_steps": 1,
        "samples": None,
        "ready": None,
        "data_max_ns": ns.get("data", 0),
        "inference": False,
        **rest,
    }
    names = [field[:-3] for field in Step.__struct_fields__ if field.endswith("_ns")]
    names = [name for name in names if name not in ("start", "end", "data_max")]
    return Step(
        number=number,
        start_ns=start_ns,
        end_ns=start_ns + wall_ns,
        phases=phases,
        **{f"{name}_ns": ns.get(name, 0) for name in names},
        **fields,
    )


def steps(count: int, first: int = 1, start_ms: float = 0.0, **parts: Any) -> list[Step]:
    """Equal steps, one after the other."""
    made: list[Step] = []
    for number in range(first, first + count):
        made.append(step(number, start_ms, **parts))
        start_ms = made[-1].end_ns / MS
    return made


def open_at(since_ms: float, kind: int = marks.FETCH_LEAVE, **fields: Any) -> Open:
    """An open step whose last mark lies at `since_ms`."""
    given: dict[str, Any] = {
        "started_ns": round(since_ms * MS),
        "data_ns": 0,
        "forward_ns": 0,
        "backward_ns": 0,
        "optimizer_ns": 0,
        "other_ns": 0,
        "evaluation_ns": 0,
        "checkpoint_ns": 0,
        "compile_ns": 0,
        "user_phase": None,
        "evaluating": False,
        **fields,
    }
    return Open(kind=kind, since_ns=round(since_ms * MS), **given)


def delivered(made: list[Step], t_ms: float | None = None, **fields: Any) -> Delivered:
    """A batch of steps, reported when the last of them ended unless `t_ms` says otherwise."""
    at_ms = t_ms if t_ms is not None else made[-1].end_ns / MS if made else 0.0
    lost = fields.pop("lost", 0)
    given: dict[str, Any] = {
        "sequence": 1,
        "open": open_at(at_ms),
        "loaders": [],
        "lost_marks": 0,
        "rss_bytes": None,
        "mark_cost_ns": 500,
        "marks": 6 * (made[-1].number if made else 0),
        "fault": None,
        **fields,
    }
    t_ns = round(at_ms * MS)
    return Delivered(t_ns=t_ns, batch=Batch(sent_ns=t_ns, steps=made, **given), lost=lost)


def loader(**fields: Any) -> Loader:
    """A DataLoader of four workers."""
    given: dict[str, Any] = {
        "key": 1,
        "kind": "_MultiProcessingDataLoaderIter",
        "num_workers": 4,
        "prefetch_factor": 2,
        "pin_memory": False,
        "persistent_workers": False,
        "batch_size": 32,
        "batches": 100,
        "worker_pids": (11, 12, 13, 14),
        "dataset": "Photographs",
        **fields,
    }
    return Loader(**given)


def process(pid: int, role: ProcessRole = "main", **fields: Any) -> ProcessUse:
    """One process, resident in 100 MiB."""
    given: dict[str, Any] = {
        "name": "python",
        "cpu_percent": 90.0,
        "rss_bytes": 100 * 1024 * 1024,
        "pss_bytes": None,
        "read_bytes_s": None,
        "write_bytes_s": None,
        "status": "R",
        "threads": 4,
        **fields,
    }
    return ProcessUse(pid=pid, role=role, **given)


def processes(t_ms: float, *seen: ProcessUse) -> ProcessesSeen:
    """A look at the process tree of a machine of 8 cores and 32 GiB."""
    return ProcessesSeen(
        t_ns=round(t_ms * MS),
        processes=seen,
        cores=8.0,
        machine_cpu_percent=25.0,
        memory_total_bytes=32 * 1024**3,
        memory_available_bytes=20 * 1024**3,
    )


class ScriptedEngine:
    """Judges as it was set up to, and keeps the windows it was asked about."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.windows: list[Any] = []
        self._verdicts = list(verdicts)
        self.grows: tuple[MemoryTrend, ...] = ()

    def judge(self, window: Window) -> Verdict:
        """The next verdict; the last one again and again."""
        if isinstance(window, StepWindow):
            self.windows.append(window)
        if len(self._verdicts) > 1:
            return self._verdicts.pop(0)
        return self._verdicts[0] if self._verdicts else verdict("warming-up")

    def timeline(self) -> VerdictTimeline:
        """Nothing: the verdict is the test's."""
        return NO_HISTORY

    def summary(self) -> tuple[Held, ...]:
        """Nothing, likewise."""
        return ()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Those of the test."""
        return self.grows


def finding(kind: Any, **fields: Any) -> Finding:
    """A finding of a kind."""
    given: dict[str, Any] = {
        "sub": None,
        "severity": "info",
        "share": None,
        "share_low": None,
        "share_high": None,
        "speedup": None,
        "speedup_is": None,
        "headline": f"it is {kind}",
        "evidence": (),
        "advice": (),
        **fields,
    }
    return Finding(kind=kind, **given)


def verdict(kind: Any, *contributors: Finding, **fields: Any) -> Verdict:
    """A verdict of a kind."""
    confidence = fields.pop("confidence", 0.9)
    return Verdict(
        finding=finding(kind, **fields),
        confidence=confidence,
        since_step=None,
        since_ns=None,
        contributors=contributors,
        missing=(),
    )


def session(*verdicts: Verdict) -> tuple[Session, ScriptedEngine]:
    """A session that began at 0, and the engine it asks."""
    engine = ScriptedEngine(*verdicts)
    return Session(48213, "train.py", 0, engine), engine


def picture(of: Session, at_ms: float) -> Snapshot:
    """Its snapshot at that moment, judged if a second has passed."""
    return judged(of, round(at_ms * MS))


def judged(of: Session, now_ns: int, now_unix: float = 1_700_000_000.0) -> Snapshot:
    """What its collector would publish."""
    of.judge_if_due(now_ns)
    return of.snapshot(now_ns, now_unix)
