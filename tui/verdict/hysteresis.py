"""Which causes hold, which is the headline, and the timeline of past verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .findings import Finding, Kind, Verdict
from .scoring import beats, recoverable, worth
from .thresholds import hysteresis as limits
from .window import TimeSpan


class Hysteresis:
    """Whether one cause holds."""

    def __init__(self, enter_low: float = limits.ENTER_LOW) -> None:
        self._enter_low = enter_low
        """What the lower bound of its share must exceed for it to enter."""
        self.holds = False
        self.finding: Finding | None = None
        """As last seen."""
        self._streak = 0
        """Windows in a row in which it should enter, or leave once it holds."""
        self._streak_ns = 0
        """Where the streak's first window ended."""
        self._other_subs = 0

    def update(self, finding: Finding | None, spans: Sequence[TimeSpan], fresh: bool) -> None:
        """One window, some of its spans new. `fresh`: nothing was known before, so one window is
        enough: the interval alone must do, or a verdict within 10 steps would be impossible."""
        crosses = self._leaves(finding) if self.holds else self._enters(finding)
        if crosses and not self._streak:
            self._streak_ns = spans[-1].end_ns
        self._streak = self._streak + 1 if crosses else 0
        if crosses and (fresh or self._is_long_enough(spans)):
            self.holds = not self.holds
            self._streak = 0
        if finding is not None:
            self.finding = self._with_steady_sub(finding, fresh)
        elif not self.holds:
            self.finding = None

    def _is_long_enough(self, spans: Sequence[TimeSpan]) -> bool:
        if not self.holds:
            return self._streak >= limits.ENTER_TIMES
        return (
            self._streak >= limits.LEAVE_TIMES
            and renewed(spans, self._streak_ns) >= limits.LEAVE_RENEWED
        )

    def _enters(self, finding: Finding | None) -> bool:
        if finding is None or finding.share is None or finding.share_low is None:
            return False
        return worth(finding) > limits.ENTER_SHARE and finding.share_low > self._enter_low

    def _leaves(self, finding: Finding | None) -> bool:
        if finding is None:
            return True
        share, high = finding.share or 0.0, finding.share_high or 0.0
        if high < limits.LEAVE_SURELY or recoverable(finding) < limits.CONTRIBUTOR:
            return True
        return share < limits.LEAVE_SHARE and high < limits.LEAVE_HIGH

    def _with_steady_sub(self, finding: Finding, fresh: bool) -> Finding:
        """The finding, unless its sub is new: then the old one with the new figures for a while."""
        old = self.finding
        if old is None or old.sub == finding.sub or fresh:
            self._other_subs = 0
            return finding
        self._other_subs += 1
        if self._other_subs >= limits.SUB_TIMES:
            self._other_subs = 0
            return finding
        return replace(
            old,
            severity=finding.severity,
            share=finding.share,
            share_low=finding.share_low,
            share_high=finding.share_high,
            speedup=finding.speedup,
            speedup_is=finding.speedup_is,
            headline=finding.headline,
        )


@dataclass(frozen=True, slots=True)
class _Rival:
    """A cause that would take the headline."""

    kind: Kind
    times: int
    """Windows in a row in which it won."""
    since_ns: int
    """Where the first of these ended."""


class Selection:
    """All causes of one kind of window, and the one that holds the headline."""

    def __init__(self, kinds: Iterable[Kind], enter_low: float, swap_renewed: float) -> None:
        self._causes = {kind: Hysteresis(enter_low) for kind in kinds}
        self._swap_renewed = swap_renewed
        self._top: Kind | None = None
        self._rival: _Rival | None = None

    def update(
        self, found: Mapping[Kind, Finding | None], spans: Sequence[TimeSpan], fresh: bool
    ) -> Finding | None:
        """The headline's finding after one more window; None where no cause holds."""
        for kind, finding in found.items():
            self._causes[kind].update(finding, spans, fresh)
        self._top = self._choose_top(spans, fresh)
        return self._causes[self._top].finding if self._top else None

    def _choose_top(self, spans: Sequence[TimeSpan], fresh: bool) -> Kind | None:
        """The cause that recovers most; a new one must win for sure, twice, on new spans."""
        rival, self._rival = self._rival, None
        holding = [one.finding for one in self._causes.values() if one.holds and one.finding]
        if not holding:
            return None
        best = max(holding, key=recoverable)
        now = next((finding for finding in holding if finding.kind == self._top), None)
        if now is None or fresh or best.kind == now.kind:
            return best.kind
        if (
            recoverable(best) - recoverable(now) < limits.SWAP_MARGIN
            or beats(best, now) < limits.SWAP_PROBABILITY
        ):
            return now.kind
        if rival is not None and rival.kind == best.kind:
            rival = replace(rival, times=rival.times + 1)
        else:
            rival = _Rival(best.kind, 1, spans[-1].end_ns)
        self._rival = rival
        wins = rival.times >= limits.SWAP_TIMES
        wins = wins and renewed(spans, rival.since_ns) >= self._swap_renewed
        return best.kind if wins else now.kind


def renewed(spans: Sequence[TimeSpan], since_ns: int) -> float:
    """Part of the spans that began after `since_ns`, 0 to 1."""
    return sum(one.start_ns >= since_ns for one in spans) / len(spans)


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
