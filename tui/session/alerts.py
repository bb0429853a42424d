"""What is worth calling a person back for: the verdict changes, the run stalls, ends, or will be
out of memory. What counts as a change is the engine's: it has its own hysteresis."""

from dataclasses import dataclass
from typing import Literal

from ..model.snapshot import Snapshot
from ..verdict.findings import Finding
from ..verdict.memory.trends import MemoryTrend, Whose
from ..wording.words import abstains, name_of, word_of

AlertKind = Literal["verdict", "stalled", "memory", "ended"]


@dataclass(frozen=True, slots=True)
class Alert:
    """One of them."""

    kind: AlertKind
    text: str
    """ "train.py (48213): INPUT-BOUND: data wait is 57% of every step"."""
    verdict: str
    """ "input/workers"; of an end the last one."""
    share: float | None
    """Part of the steps' time that its cause holds."""
    pid: int
    script: str
    rank: int | None
    host: str
    step: int | None


class Alerts:
    """Of one run, look by look."""

    def __init__(self) -> None:
        self._verdict: str | None = None
        """The last that was no abstention; None before."""
        self._memories: frozenset[Whose] = frozenset()
        """Those that will be full, as of the last look."""
        self._ended = False

    def look(self, seen: Snapshot) -> list[Alert]:
        """What is new in this snapshot."""
        if self._ended:
            return []
        if seen.status.state == "ended":
            self._ended = True
            return [_alert("ended", f"training {seen.status.ended or 'ended'}", seen)]
        new = self._memory(seen)
        finding = _finding(seen)
        if abstains(finding):
            return new
        verdict = name_of(finding.kind, finding.sub)
        before, self._verdict = self._verdict, verdict
        first = before is None and finding.severity == "info"  # nothing to call anybody for
        of_memory = finding.kind == "memory-growth" and bool(self._memories)
        if verdict == before or first or of_memory:
            return new
        kind: AlertKind = "stalled" if finding.kind == "stalled" else "verdict"
        return [*new, _alert(kind, f"{word_of(finding)}: {finding.headline}", seen)]

    def _memory(self, seen: Snapshot) -> list[Alert]:
        full = {trend.whose: trend for trend in seen.trends if _will_be_full(trend)}
        new = [whose for whose in full if whose not in self._memories]
        self._memories = frozenset(full)
        headlines = (full[whose].finding for whose in new)
        return [
            _alert("memory", f"MEMORY: {finding.headline}", seen)
            for finding in headlines
            if finding
        ]


def _will_be_full(trend: MemoryTrend) -> bool:
    return (
        trend.left is not None
        and trend.finding is not None
        and trend.finding.severity == "critical"
    )


def _finding(seen: Snapshot) -> Finding:
    """Of all ranks as one, where there are several."""
    return seen.verdict.finding if seen.job is None else seen.job.finding


def _alert(kind: AlertKind, what: str, seen: Snapshot) -> Alert:
    finding, hello = _finding(seen), seen.hello
    rank = hello.rank if hello is not None else None
    who = f"{seen.script} ({seen.pid})" if rank is None else f"{seen.script} rank {rank}"
    return Alert(
        kind=kind,
        text=f"{who}: {what}",
        verdict=name_of(finding.kind, finding.sub),
        share=finding.share,
        pid=seen.pid,
        script=seen.script,
        rank=rank,
        host=hello.host if hello is not None else "",
        step=seen.steps.total if seen.steps is not None else None,
    )
