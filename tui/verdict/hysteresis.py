"""Which causes hold, and which of them is the headline."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .findings import Finding, Kind
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
        """As last seen. While another sub, or view, has not held for long it stays as it was:
        headline, evidence, advice and forecast are of one cause."""
        self._streak = 0
        """Windows in a row in which it should enter, or leave once it holds."""
        self._streak_ns = 0
        """Where the streak's first window ended."""
        self._others = 0

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
            self.finding = self._steady(finding, fresh)
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

    def _steady(self, finding: Finding, fresh: bool) -> Finding:
        """The finding, unless what it says is new: then the old one for a while."""
        old = self.finding
        alike = old is not None and (old.sub, old.view) == (finding.sub, finding.view)
        if old is None or alike or fresh or not self.holds:
            self._others = 0
            return finding
        self._others += 1
        if self._others >= limits.SUB_TIMES:
            self._others = 0
            return finding
        return old


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
        self._worth_then = 0.0
        """Of the headline, when it was chosen."""

    def holds(self, kind: Kind) -> bool:
        """Whether a cause holds, be it the headline or not."""
        return kind in self._causes and self._causes[kind].holds

    def update(
        self, found: Mapping[Kind, Finding | None], spans: Sequence[TimeSpan], fresh: bool
    ) -> Finding | None:
        """The headline's finding after one more window; None where no cause holds."""
        for kind, finding in found.items():
            self._causes[kind].update(finding, spans, fresh)
        before, self._top = self._top, self._choose_top(spans, fresh)
        top = self._causes[self._top].finding if self._top else None
        if top is not None and top.kind != before:
            self._worth_then = worth(top)
        return top

    def _choose_top(self, spans: Sequence[TimeSpan], fresh: bool) -> Kind | None:
        """The cause that is worth most; a new one must win for sure, twice, on new spans."""
        rival, self._rival = self._rival, None
        holding = [one.finding for one in self._causes.values() if one.holds and one.finding]
        if not holding:
            return None
        best = max(holding, key=worth)
        now = next((finding for finding in holding if finding.kind == self._top), None)
        if now is None or best.kind == now.kind:
            return best.kind
        about_as_much = worth(best) - worth(now) < limits.SWAP_MARGIN
        if fresh and self._worth_then > max(worth(now), now.share_high or 0.0):
            # What it was chosen for is gone. Of two that give back about as much the larger holds.
            larger = (now.share or 0.0) > (best.share or 0.0)
            return now.kind if about_as_much and larger else best.kind
        least = limits.SWAP_ANEW if fresh else limits.SWAP_PROBABILITY
        chance = beats(best, now)
        if about_as_much or chance < least:
            return now.kind
        if fresh:
            return best.kind
        if rival is not None and rival.kind == best.kind:
            rival = replace(rival, times=rival.times + 1)
        else:
            rival = _Rival(best.kind, 1, spans[-1].end_ns)
        self._rival = rival
        wins = rival.times >= limits.SWAP_TIMES
        surely = worth(best) >= limits.SWAP_SURELY_TIMES * worth(now)
        surely = surely and chance >= limits.SWAP_SURELY
        least_new = limits.SWAP_SURELY_RENEWED if surely else self._swap_renewed
        wins = wins and renewed(spans, rival.since_ns) >= least_new
        return best.kind if wins else now.kind


class Certainty:
    """How sure the headline is: over a few windows, since one alone crosses any line by chance."""

    def __init__(self, swap_renewed: float) -> None:
        self._renewed = swap_renewed
        self._kind: Kind | None = None
        self._sure: deque[tuple[float, float]] = deque(maxlen=limits.SURE_LOOKS)
        self._other_since_ns: int | None = None
        """Where the windows began to say the contrary of `doubts`."""
        self.doubts = False
        """The headline is less likely right than not."""

    def of(
        self, kind: Kind, sure: float, real: float, spans: Sequence[TimeSpan], fresh: bool
    ) -> float:
        """The confidence in this headline after one more window: the mean of the last ones. It is
        doubted by `real`, which leaves out the other causes that hold: which of these is first is
        for `Selection`. At once where nothing was known before, else when so much of the window is
        new since."""
        anew = fresh or kind != self._kind
        if anew:
            self._kind = kind
            self._sure.clear()
        self._sure.append((sure, real))
        mean = sum(each for each, _ in self._sure) / len(self._sure)
        known = sum(each for _, each in self._sure) / len(self._sure)
        doubts = known < (limits.SURE_AGAIN if self.doubts else limits.LEAST_SURE)
        if anew or doubts == self.doubts:
            self.doubts, self._other_since_ns = doubts, None
        elif self._other_since_ns is None:
            self._other_since_ns = spans[-1].end_ns
        elif renewed(spans, self._other_since_ns) >= self._renewed:
            self.doubts, self._other_since_ns = doubts, None
        return mean if self.doubts else max(limits.LEAST_SURE, mean)


def renewed(spans: Sequence[TimeSpan], since_ns: int) -> float:
    """Part of the spans that began after `since_ns`, 0 to 1."""
    return sum(one.start_ns >= since_ns for one in spans) / len(spans)
