"""How a cause becomes a finding: severity, recoverable share, speed-up."""

from tui.verdict import policy
from tui.verdict.findings import Evidence, Finding, Kind, Severity
from tui.verdict.forecast.gain import Gain
from tui.verdict.ratio import Share


def speedup_of(share: float, floor: float = 0.0) -> float:
    """Steps a second after over before: P / max(P - cause, S/W), all as shares of P."""
    return 1.0 / min(1.0, max(policy.LEAST_LEFT, 1.0 - share, floor))


def recoverable(finding: Finding) -> float:
    """R = 1 - P'/P; the share itself where no speed-up is known. Of an optimizer,
    which no fix takes away, what one may give back of the bound."""
    back = finding.share or 0.0
    if finding.speedup is not None and finding.speedup >= 1.0:
        back = 1.0 - 1.0 / finding.speedup
    if finding.kind == "optimizer" and finding.speedup_is == "bound":
        back *= policy.UPDATE_SAVES
    return back


def worth(finding: Finding) -> float:
    """What makes a cause a verdict: the part of the step that it holds, and that a fix would give
    back (`recoverable`), the smaller."""
    return min(finding.share or 0.0, recoverable(finding))


def severity_of(share: float) -> Severity:
    """By the part of the time that is lost."""
    if share >= policy.CRITICAL_SHARE:
        return "critical"
    return "warning" if share >= policy.WARNING_SHARE else "info"


def bound(
    kind: Kind,
    sub: str | None,
    share: Share,
    headline: str,
    evidence: tuple[Evidence, ...],
    advice: tuple[str, ...],
    floor: float = 0.0,
    gain: Gain | None = None,
) -> Finding:
    """A cause that holds `share` of the time and whose removal can give that back at most.

    A bound, not an estimate: what runs beside it may become the limit. `floor` is the part of the
    step below which the loader would be the limit. A replay that knows more
    says so in `gain`. The most telling evidence comes first: three pieces are kept.
    """
    return Finding(
        kind=kind,
        sub=sub,
        severity=severity_of(share.mean),
        share=share.mean,
        share_low=share.low,
        share_high=share.high,
        speedup=speedup_of(share.mean, floor) if gain is None else gain.speedup,
        speedup_is="bound" if gain is None else gain.speedup_is,
        headline=headline,
        evidence=evidence[: policy.MOST_EVIDENCE],
        advice=advice,
    )


def plain(
    kind: Kind,
    sub: str | None,
    severity: Severity,
    headline: str,
    evidence: tuple[Evidence, ...] = (),
    advice: tuple[str, ...] = (),
) -> Finding:
    """A finding that has no share of the time."""
    return Finding(
        kind=kind,
        sub=sub,
        severity=severity,
        share=None,
        share_low=None,
        share_high=None,
        speedup=None,
        speedup_is=None,
        headline=headline,
        evidence=evidence[: policy.MOST_EVIDENCE],
        advice=advice,
    )
