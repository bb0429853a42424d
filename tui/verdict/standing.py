"""Which causes hold: entered when they are sure, left when they are gone, so that nothing flaps."""

from dataclasses import replace

from tui.verdict import policy
from tui.verdict.findings import Finding


class Standing:
    """One cause over the looks."""

    def __init__(self) -> None:
        self.holds = False
        self.finding: Finding | None = None
        """As it was last seen."""
        self._streak = 0
        """Looks in a row that speak for entering, or for leaving once it holds."""
        self._other_subs = 0

    def look(self, finding: Finding | None, fresh: bool) -> None:
        """One look with new steps. `fresh`: nothing was known before, so one look is enough: the
        interval alone must do, or a verdict within 10 steps would be impossible."""
        speaks = self._leaves(finding) if self.holds else _enters(finding)
        self._streak = self._streak + 1 if speaks else 0
        needed = policy.LEAVE_TIMES if self.holds else policy.ENTER_TIMES
        if self._streak >= (1 if fresh else needed):
            self.holds = not self.holds
            self._streak = 0
        if finding is not None:
            self.finding = self._with_steady_sub(finding, fresh)
        elif not self.holds:
            self.finding = None

    def _leaves(self, finding: Finding | None) -> bool:
        if finding is None:
            return True
        share, high = finding.share or 0.0, finding.share_high or 0.0
        if high < policy.LEAVE_SURELY:
            return True
        return share < policy.LEAVE_SHARE and high < policy.LEAVE_HIGH

    def _with_steady_sub(self, finding: Finding, fresh: bool) -> Finding:
        """The finding, unless its sub is new: then the old one with the new figures for a while."""
        old = self.finding
        if old is None or old.sub == finding.sub or fresh:
            self._other_subs = 0
            return finding
        self._other_subs += 1
        if self._other_subs >= policy.SUB_TIMES:
            self._other_subs = 0
            return finding
        return with_figures(old, finding)


def _enters(finding: Finding | None) -> bool:
    if finding is None or finding.share is None or finding.share_low is None:
        return False
    return finding.share > policy.ENTER_SHARE and finding.share_low > policy.ENTER_LOW


def with_figures(old: Finding, new: Finding) -> Finding:
    """What `old` says with the shares of `new`."""
    return replace(
        old,
        severity=new.severity,
        share=new.share,
        share_low=new.share_low,
        share_high=new.share_high,
        speedup=new.speedup,
        headline=new.headline,
    )
