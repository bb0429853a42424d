"""The metrics of what is watched: snapshots in, families of samples out. Reads nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from ..model.snapshot import RunState, Snapshot
from ..session.steps import ALWAYS, START_UP
from ..steps import StepHistogram
from ..verdict.forecast.interval import forecast_of
from .catalogue import CATALOGUE, Metric, MetricName

MOST_OWN_PHASES: Final = 16
"""Phases of a program's own that are exported by name, the first that came; a program may make new
names for ever. The others are one, `OTHERS`."""
OTHERS: Final = "other own phases"
STEP_PHASES: Final = (*ALWAYS, START_UP, "evaluation", "checkpoint", "compile")
MOST_CHARACTERS: Final = 128
"""Of the value of a label."""
LAG_AT: Final = ("data", "forward", "backward", "optimizer")

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. A histogram's is all of it."""

    labels: Labels
    value: float | StepHistogram


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its samples; no two of them have the same labels."""

    metric: Metric
    samples: tuple[Sample, ...]


class PhaseNames:
    """Which of a program's own phases have a name of their own among the labels."""

    def __init__(self) -> None:
        self._own: set[str] = set()

    def label(self, name: str) -> str:
        """The label of a phase."""
        if name in STEP_PHASES or name in self._own:
            return label_text(name)
        if len(self._own) < MOST_OWN_PHASES:
            self._own.add(name)
            return label_text(name)
        return OTHERS


@dataclass(frozen=True, slots=True)
class Watched:
    """One process, and how it is labelled."""

    snapshot: Snapshot
    run: str
    """Name of the training: the same for all its ranks, on all its hosts."""
    host: str
    job: tuple[str, ...] = ()
    """What the ranks of one job here have in common; () of a process alone."""
    phases: PhaseNames = field(default_factory=PhaseNames)

    @property
    def rank(self) -> int:
        """0 of a process alone."""
        hello = self.snapshot.hello
        return (hello.rank or 0) if hello is not None else 0

    @property
    def labels(self) -> Labels:
        """Of all its samples. A pid makes them one process's: a run that is started again is
        another."""
        return (
            ("run", label_text(self.run)),
            ("rank", str(self.rank)),
            ("hostname", label_text(self.host)),
            ("pid", str(self.snapshot.pid)),
        )


@dataclass(frozen=True, slots=True)
class ExporterFacts:
    """What is known of the exporter itself."""

    version: str
    host: str
    cpu_s: float
    requests: Mapping[str, int] = field(default_factory=dict)
    """By HTTP status."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason."""
    failed_targets: int = 0


Row = tuple[MetricName, Labels, float | StepHistogram]


def label_text(value: str) -> str:
    """What a label may hold: printable, and no longer than `MOST_CHARACTERS`."""
    kept = value[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else "?" for char in kept)


def families(watched: Sequence[Watched], exporter: ExporterFacts) -> list[Family]:
    """All metrics that have a sample, in the catalogue's order."""
    rows: dict[MetricName, dict[Labels, float | StepHistogram]] = {}
    for name, labels, value in _all_rows(watched, exporter):
        rows.setdefault(name, {}).setdefault(labels, value)
    return [
        Family(metric, tuple(Sample(labels, value) for labels, value in rows[name].items()))
        for name, metric in CATALOGUE.items()
        if name in rows
    ]


def _all_rows(watched: Sequence[Watched], exporter: ExporterFacts) -> Iterator[Row]:
    lowest: dict[tuple[str, ...], Watched] = {}
    for one in watched:
        if one.job and one.snapshot.status.state != "ended":
            first = lowest.setdefault(one.job, one)
            if one.rank < first.rank:
                lowest[one.job] = one
    for one in watched:
        yield from _target(one)
        if one.snapshot.status.state != "ended":
            for name, more, value in _live_rows(one.snapshot, one.phases):
                yield name, one.labels + more, value
    for one in lowest.values():
        yield from _job(one)
    yield from _exporter(len(watched), exporter)


def _target(one: Watched) -> Iterator[Row]:
    """What holds of a process that has ended too."""
    seen, labels, hello = one.snapshot, one.labels, one.snapshot.hello
    info = (
        ("script", label_text(seen.script)),
        ("mode", seen.status.mode),
        ("world_size", str((hello.world_size or 1) if hello else 1)),
        ("torch", label_text((hello.torch or "") if hello else "")),
    )
    yield "gpuwatch_target_info", labels + info, 1
    yield "gpuwatch_target_up", labels, float(seen.status.state == "live")
    for state in get_args(RunState):
        yield (
            "gpuwatch_target_state",
            (*labels, ("state", state)),
            float(seen.status.state == state),
        )
    if seen.steps is not None:
        yield "gpuwatch_steps_total", labels, seen.steps.total
    if seen.histogram is not None:
        yield "gpuwatch_step_seconds", labels, seen.histogram
    yield "gpuwatch_lost_marks_total", labels, seen.status.lost_marks
    yield "gpuwatch_lost_messages_total", labels, seen.status.lost_messages


def _live_rows(seen: Snapshot, names: PhaseNames) -> Iterator[Row]:
    """Labels beside the process's own."""
    yield from _verdict(seen)
    yield from _phases(seen, names)
    yield from _devices(seen)
    yield from _memory(seen)
    if seen.status.cost_share is not None:
        yield "gpuwatch_probe_cost_ratio", (), seen.status.cost_share
    if seen.open_step is not None and seen.open_step.step_age_s is not None:
        yield "gpuwatch_open_step_seconds", (), seen.open_step.step_age_s


def _verdict(seen: Snapshot) -> Iterator[Row]:
    verdict = seen.verdict
    finding = verdict.finding
    info = (("kind", finding.kind), ("sub", finding.sub or ""), ("severity", finding.severity))
    yield "gpuwatch_verdict_info", info, 1
    yield "gpuwatch_verdict_confidence_ratio", (), verdict.confidence
    if finding.share is not None:
        yield "gpuwatch_verdict_share_ratio", (), finding.share
    if (forecast := forecast_of(finding)) is not None:
        yield "gpuwatch_verdict_speedup_ratio", (), forecast.speedup


def _phases(seen: Snapshot, names: PhaseNames) -> Iterator[Row]:
    by_clock: dict[str, list[tuple[str, float]]] = {}
    if seen.steps is not None:
        by_clock["host"] = [(one.name, one.share) for one in seen.steps.phases]
    if seen.gpu_phases is not None:
        by_clock["gpu"] = [(one.name, one.share) for one in seen.gpu_phases.phases]
    if seen.sampled is not None:
        by_clock["samples"] = [(name, share.mean) for name, share in seen.sampled.shares.items()]
    for clock, shares in by_clock.items():
        for phase, share in _added_up((names.label(name), share) for name, share in shares):
            yield "gpuwatch_phase_ratio", (("phase", phase), ("clock", clock)), share
    waits = {name: share for name, share in by_clock.get("host", ())}
    if seen.gpu_phases is not None:
        step_ms = sum(one.mean_ms for one in seen.gpu_phases.phases)
        if step_ms > 0:
            exposed = min(1.0, seen.gpu_phases.exposed_ms / step_ms)
            yield "gpuwatch_exposed_wait_ratio", (), exposed
    elif seen.steps is not None and not seen.gpus:
        exposed = waits.get("data", 0.0) + waits.get(START_UP, 0.0)
        yield "gpuwatch_exposed_wait_ratio", (), exposed


def _added_up(shares: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Names that became one count together."""
    sums: dict[str, float] = {}
    for name, share in shares:
        sums[name] = sums.get(name, 0.0) + share
    return list(sums.items())


def _devices(seen: Snapshot) -> Iterator[Row]:
    busy = {one.index: one.busy for one in seen.activity}
    for gpu in seen.gpus:
        labels = (("UUID", label_text(gpu.uuid)), ("gpu", str(gpu.index)))
        yield "gpuwatch_gpu_info", (*labels, ("model", label_text(gpu.name))), 1
        yield "gpuwatch_gpu_memory_used_bytes", labels, gpu.memory_used_bytes
        yield "gpuwatch_gpu_memory_limit_bytes", labels, gpu.memory_total_bytes
        percent = busy.get(gpu.index)
        if percent is not None:
            yield "gpuwatch_gpu_busy_ratio", labels, percent / 100
    if seen.ledger is not None:
        for part, share in seen.ledger.shares.items():
            yield "gpuwatch_gpu_time_ratio", (("part", part),), share
    if seen.gpu_phases is not None:
        for phase, lag_ms in zip(LAG_AT, seen.gpu_phases.lag_ms, strict=True):
            if lag_ms is not None:
                yield "gpuwatch_gpu_lag_seconds", (("phase", phase),), lag_ms / 1000


def _memory(seen: Snapshot) -> Iterator[Row]:
    memory = seen.memory
    whose = {"process": memory.host_rss_bytes, "workers": memory.workers_bytes}
    for name, held in whose.items():
        if held is not None:
            yield "gpuwatch_host_memory_bytes", (("whose", name),), held
    if memory.available_bytes is not None:
        yield "gpuwatch_host_memory_available_bytes", (), memory.available_bytes
    for trend in seen.trends:
        if trend.finding is not None and trend.finding.severity != "info" and trend.left:
            seconds = trend.left.earliest_steps * trend.left.step_hours * 3600
            yield "gpuwatch_memory_full_seconds", (("whose", trend.whose),), seconds
    newest = {one.device: one for one in seen.gpu_memory}
    for device, one in sorted(newest.items()):
        counted = {
            "allocated": one.allocated,
            "reserved": one.reserved,
            "peak_allocated": one.peak_allocated,
            "peak_reserved": one.peak_reserved,
        }
        cuda = ("cuda", str(device))
        for what, held in counted.items():
            yield "gpuwatch_allocator_bytes", (cuda, ("what", what)), held
        yield "gpuwatch_allocator_retries_total", (cuda,), one.retries


def _job(one: Watched) -> Iterator[Row]:
    """Of a job of several ranks, from what its lowest rank here sees of all."""
    seen = one.snapshot.job
    if seen is None:
        return
    finding = seen.finding
    info = (
        ("kind", finding.kind),
        ("sub", finding.sub or ""),
        ("severity", finding.severity),
        ("late_rank", "" if seen.late is None else str(seen.late.rank.rank)),
    )
    yield "gpuwatch_job_verdict_info", one.labels + info, 1
    exchange = seen.job.exchange
    if exchange is None or not exchange.steps:
        return
    pids = {rank.rank: rank.pid for rank in one.snapshot.ranks}
    own = dict(one.labels)
    for rank in exchange.ranks:
        named = {**own, "rank": str(rank), "pid": str(pids.get(rank, ""))}
        labels = tuple(named.items())
        waiting = exchange.waiting(rank).mean
        yield "gpuwatch_communication_ratio", (*labels, ("part", "waiting")), waiting
        if exchange.transfer is not None:
            transfer = exchange.transfer.mean
            yield "gpuwatch_communication_ratio", (*labels, ("part", "transfer")), transfer
        yield "gpuwatch_late_ratio", labels, exchange.late(rank).mean


def _exporter(targets: int, exporter: ExporterFacts) -> Iterator[Row]:
    host = (("hostname", label_text(exporter.host)),)
    yield "gpuwatch_exporter_info", (*host, ("version", label_text(exporter.version))), 1
    yield "gpuwatch_exporter_targets", host, targets
    yield "gpuwatch_exporter_cpu_seconds_total", host, exporter.cpu_s
    yield "gpuwatch_exporter_failed_targets_total", host, exporter.failed_targets
    for status, times in sorted(exporter.requests.items()):
        yield "gpuwatch_exporter_requests_total", (*host, ("status", status)), times
    for reason, times in sorted(exporter.dropped.items()):
        yield (
            "gpuwatch_exporter_dropped_connections_total",
            (*host, ("reason", reason)),
            times,
        )
