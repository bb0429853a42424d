"""What was reported before: each verdict over the time it held, and the run's time by verdict."""

from dataclasses import dataclass

from .findings import Finding, Kind, Verdict
from .thresholds import hysteresis as limits


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """One verdict over the time it held. Times are the windows' (the monitor's perf_counter_ns)."""

    kind: Kind
    sub: str | None
    since_ns: int
    until_ns: int
    since_step: int
    until_step: int
    share: float | None
    """Part of the steps that the cause held, 0 to 1: the mean over this time."""
    speedup: float | None
    """What removing it would have given: the mean over this time."""
    headline: str
    """The last one."""


@dataclass(frozen=True, slots=True)
class VerdictTimeline:
    """Verdicts one after the other, oldest first."""

    verdicts: tuple[PastVerdict, ...]
    dropped: int
    """Older entries that are no longer kept."""


@dataclass(frozen=True, slots=True)
class Held:
    """All the time for which one verdict held."""

    kind: Kind
    sub: str | None
    share_of_time: float
    """Of all the time that was judged, 0 to 1."""
    ns: int
    cost_ns: int | None
    """What the cause cost in that time: its share of each moment, added up. None without one."""


NO_HISTORY = VerdictTimeline((), 0)


_Name = tuple[Kind, str | None]


class VerdictHistory:
    """The account is exact; the timeline leaves out verdicts that held for a moment only."""

    def __init__(self) -> None:
        self._now: tuple[Finding, int] | None = None
        """The present finding, and when it was last judged."""
        self._stays: list[_Stay] = []
        self._dropped = 0
        self._times: dict[_Name, _Weighed] = {}

    def add(self, verdict: Verdict, now_ns: int, step: int) -> None:
        """From now on it is `verdict`; until now it was the one before."""
        finding = verdict.finding
        if self._now is None:
            self._stays.append(_Stay(finding, now_ns, step))
        else:
            before, since_ns = self._now
            self._times.setdefault(_name(before), _Weighed()).add(before.share, now_ns - since_ns)
            self._stays[-1].goes_on(before, now_ns, step)
            if _name(before) != _name(finding):
                self._begin(finding, now_ns, step)
            else:
                self._stays[-1].finding = finding
        self._now = finding, now_ns

    def _begin(self, finding: Finding, now_ns: int, step: int) -> None:
        """A new entry. A short one before it becomes part of what it interrupted."""
        if len(self._stays) > 1 and self._stays[-1].is_short:
            self._stays.pop()
            self._stays[-1].ends_at(now_ns, step)
            if _name(self._stays[-1].finding) == _name(finding):
                return
        self._stays.append(_Stay(finding, now_ns, step))
        if len(self._stays) > limits.TIMELINE_MOST:
            del self._stays[0]
            self._dropped += 1

    def timeline(self) -> VerdictTimeline:
        """Verdicts, oldest first; only the newest entry may be a moment's."""
        return VerdictTimeline(tuple(stay.as_past() for stay in self._stays), self._dropped)

    def summary(self) -> tuple[Held, ...]:
        """Verdicts by their share of the time, the largest first; a single one counts whole."""
        whole = sum(time.ns for time in self._times.values())
        if not whole:
            now = self._now
            return (Held(*_name(now[0]), 1.0, 0, None),) if now else ()
        held = [
            Held(*name, time.ns / whole, time.ns, None if time.known_ns == 0 else round(time.sum))
            for name, time in self._times.items()
            if time.ns
        ]
        return tuple(sorted(held, key=lambda one: -one.ns))


class _Weighed:
    """A value over time, and the sum of value x time."""

    def __init__(self) -> None:
        self.ns = 0
        self.known_ns = 0
        """Of that, with a value."""
        self.sum = 0.0

    def add(self, value: float | None, ns: int) -> None:
        self.ns += max(0, ns)
        if value is not None:
            self.known_ns += max(0, ns)
            self.sum += value * max(0, ns)

    @property
    def mean(self) -> float | None:
        return self.sum / self.known_ns if self.known_ns else None


class _Stay:
    """An entry of the timeline while it grows."""

    def __init__(self, finding: Finding, now_ns: int, step: int) -> None:
        self.finding = finding
        self._since_ns, self._since_step = now_ns, step
        self._until_ns, self._until_step = now_ns, step
        self._share, self._speedup = _Weighed(), _Weighed()

    def goes_on(self, finding: Finding, now_ns: int, step: int) -> None:
        """`finding` held from the last judgement until now."""
        if _name(finding) == _name(self.finding):
            self.finding = finding
            self._share.add(finding.share, now_ns - self._until_ns)
            self._speedup.add(finding.speedup, now_ns - self._until_ns)
        self.ends_at(now_ns, step)

    def ends_at(self, now_ns: int, step: int) -> None:
        """It holds until now, whatever came in between."""
        self._until_ns, self._until_step = max(now_ns, self._until_ns), step

    @property
    def is_short(self) -> bool:
        return self._until_ns - self._since_ns < limits.TIMELINE_LEAST_NS

    def as_past(self) -> PastVerdict:
        finding = self.finding
        return PastVerdict(
            kind=finding.kind,
            sub=finding.sub,
            since_ns=self._since_ns,
            until_ns=self._until_ns,
            since_step=self._since_step,
            until_step=self._until_step,
            share=finding.share if self._share.mean is None else self._share.mean,
            speedup=finding.speedup if self._speedup.mean is None else self._speedup.mean,
            headline=finding.headline,
        )


def _name(finding: Finding) -> _Name:
    return finding.kind, finding.sub
