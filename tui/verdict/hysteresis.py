"""Which causes hold: entered when they are sure, left when they are gone, so that nothing flaps."""

from collections.abc import Sequence
from dataclasses import replace

from ...probe.wire.messages import Step
from . import thresholds
from .findings import Finding
from .scoring import recoverable, worth


class Hysteresis:
    """One cause over the looks."""

    def __init__(self, enter_low: float = thresholds.ENTER_LOW) -> None:
        self._enter_low = enter_low
        """What the lower bound of its share must exceed for it to enter."""
        self.holds = False
        self.finding: Finding | None = None
        """As it was last seen."""
        self._streak = 0
        """Looks in a row that speak for entering, or for leaving once it holds."""
        self._streak_ns = 0
        """Where the steps of the streak's first look ended."""
        self._other_subs = 0

    def look(self, finding: Finding | None, steps: Sequence[Step], fresh: bool) -> None:
        """One look at `steps`, some of them new. `fresh`: nothing was known before, so one look is
        enough: the interval alone must do, or a verdict within 10 steps would be impossible."""
        speaks = self._leaves(finding) if self.holds else self._enters(finding)
        if speaks and not self._streak:
            self._streak_ns = steps[-1].end_ns
        self._streak = self._streak + 1 if speaks else 0
        if speaks and (fresh or self._is_long_enough(steps)):
            self.holds = not self.holds
            self._streak = 0
        if finding is not None:
            self.finding = self._with_steady_sub(finding, fresh)
        elif not self.holds:
            self.finding = None

    def _is_long_enough(self, steps: Sequence[Step]) -> bool:
        if not self.holds:
            return self._streak >= thresholds.ENTER_TIMES
        return (
            self._streak >= thresholds.LEAVE_TIMES
            and renewed(steps, self._streak_ns) >= thresholds.LEAVE_RENEWED
        )

    def _enters(self, finding: Finding | None) -> bool:
        if finding is None or finding.share is None or finding.share_low is None:
            return False
        return worth(finding) > thresholds.ENTER_SHARE and finding.share_low > self._enter_low

    def _leaves(self, finding: Finding | None) -> bool:
        if finding is None:
            return True
        share, high = finding.share or 0.0, finding.share_high or 0.0
        if high < thresholds.LEAVE_SURELY or recoverable(finding) < thresholds.CONTRIBUTOR:
            return True
        return share < thresholds.LEAVE_SHARE and high < thresholds.LEAVE_HIGH

    def _with_steady_sub(self, finding: Finding, fresh: bool) -> Finding:
        """The finding, unless its sub is new: then the old one with the new figures for a while."""
        old = self.finding
        if old is None or old.sub == finding.sub or fresh:
            self._other_subs = 0
            return finding
        self._other_subs += 1
        if self._other_subs >= thresholds.SUB_TIMES:
            self._other_subs = 0
            return finding
        return with_figures(old, finding)


def renewed(steps: Sequence[Step], since_ns: int) -> float:
    """Part of the steps that began after `since_ns`, 0 to 1."""
    return sum(row.start_ns >= since_ns for row in steps) / len(steps)


def with_figures(old: Finding, new: Finding) -> Finding:
    """What `old` says with the shares of `new`."""
    return replace(
        old,
        severity=new.severity,
        share=new.share,
        share_low=new.share_low,
        share_high=new.share_high,
        speedup=new.speedup,
        speedup_is=new.speedup_is,
        headline=new.headline,
    )
