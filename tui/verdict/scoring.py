"""How a cause becomes a finding: severity, recoverable share, speed-up."""

from collections.abc import Iterable
from math import sqrt

from .findings import Evidence, Finding, Kind, MissingSignal, Severity, Signal, find_missing
from .forecast.gain import Gain
from .gpu_clock import on_device
from .statistics import Share, error_of, probability_above
from .thresholds import hysteresis as limits
from .thresholds.causes import LEAST_STACKS, MACHINE_FULL
from .window import Window


def speedup_of(share: float, floor: float = 0.0) -> float:
    """Steps a second after over before: P / max(P - cause, S/W), all as shares of P."""
    return 1.0 / min(1.0, max(limits.LEAST_LEFT, 1.0 - share, floor))


def recoverable(finding: Finding) -> float:
    """R = 1 - P'/P; the share itself where no speed-up is known. Of an optimizer,
    which no fix takes away, what one may give back of the bound."""
    back = finding.share or 0.0
    if finding.speedup is not None and finding.speedup >= 1.0:
        back = 1.0 - 1.0 / finding.speedup
    if finding.kind == "optimizer" and finding.speedup_is == "bound":
        back *= limits.UPDATE_SAVES
    return back


def worth(finding: Finding) -> float:
    """What makes a cause a verdict: the part of the step that it holds, and that a fix would give
    back (`recoverable`), the smaller."""
    return min(finding.share or 0.0, recoverable(finding))


def severity_of(share: float) -> Severity:
    """By the part of the time that is lost."""
    if share >= limits.CRITICAL_SHARE:
        return "critical"
    return "warning" if share >= limits.WARNING_SHARE else "info"


def cause(
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
    step below which the loader would be the limit; `gain` is a replay's estimate, where there is
    one. The strongest evidence comes first: three pieces are kept.
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
        evidence=evidence[: limits.MOST_EVIDENCE],
        advice=advice,
    )


def state(
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
        evidence=evidence[: limits.MOST_EVIDENCE],
        advice=advice,
    )


def spread_of(finding: Finding) -> float:
    """Standard error of a finding's share."""
    if finding.share is None or finding.share_low is None or finding.share_high is None:
        return 0.0
    return error_of(finding.share, finding.share_low, finding.share_high)


def beats(one: Finding, other: Finding) -> float:
    """P(`one` is worth more than `other`)."""
    return probability_above(recoverable(one), spread_of(one), recoverable(other), spread_of(other))


def confidence_in_cause(top: Finding, others: Iterable[Finding], window: Window) -> float:
    """For a cause that holds: that it is above 5 % and above every other."""
    sure = probability_above(top.share or 0.0, spread_of(top), limits.ENTER_LOW)
    for other in others:
        if other.kind != top.kind and other.share is not None:
            sure = min(sure, beats(top, other))
    return sure * evidence_factor(window) * window.attributed


def confidence_in_none(others: Iterable[Finding], window: Window) -> float:
    """For the verdict that nothing is wrong: that no cause is above 10 %, and none has been missed.

    The error of a wait that comes in bursts grows as the root of its share, so a small share that
    was seen excludes 10 % less surely than its own interval does.
    """
    sure = max(0.0, 1.0 - limits.MISSED / max(1, window.observed))
    for other in others:
        if other.share is not None:
            limit = limits.ENTER_SHARE
            error = spread_of(other) * sqrt(max(1.0, limit / max(other.share, limits.CONTRIBUTOR)))
            sure = min(sure, 1.0 - probability_above(worth(other), error, limit))
    return sure * evidence_factor(window) * window.attributed


def evidence_factor(window: Window) -> float:
    """What the missing signals cost. On a CPU-only run the host clock is the truth."""
    blind = window.gpu_present and on_device(window) is None
    factor = limits.EVIDENCE_HOST_ONLY_ON_GPU if blind else 1.0
    if window.stacks is None or window.stacks.main_samples < LEAST_STACKS:
        factor *= limits.EVIDENCE_NO_STACKS
    if not window.sees_loading:
        factor *= limits.EVIDENCE_NO_LOADER
    if _others_unknown(window):
        factor *= limits.EVIDENCE_OTHERS_UNKNOWN
    return factor


def missing_of(window: Window) -> tuple[MissingSignal, ...]:
    """Signals that could not be had, by their sources and by what the window lacks."""
    missing = list(window.missing)

    def add(signal: Signal, why: str) -> None:
        missing.append(MissingSignal(signal, why))

    device = on_device(window)
    if window.gpu_present and device is None:
        add("gpu clock", "not measured: waits are as the host sees them")
    if device is not None and device.abstains:
        add("gpu lag", "the clocks are not aligned well enough to tell launch from compute")
    if window.stacks is None and find_missing(missing, "stacks") is None:
        add("stacks", "none yet")
    if _others_unknown(window):
        add("nvml", "does not report what other processes use of the GPU")
    if window.run_delay is None and (window.machine_cpu_percent or 0.0) >= MACHINE_FULL:
        add("run delay", "not reported by this kernel: waits for a core do not show")
    activity = window.activity
    if activity is not None and activity.throttled and activity.clock_lost is None:
        add("nvml", "no clocks: the cost of throttling is unknown")
    return tuple(dict.fromkeys(missing))


def _others_unknown(window: Window) -> bool:
    """Others hold a context on the GPU, and their use of it is unknown."""
    activity = window.activity
    return activity is not None and activity.others > 0 and activity.others_sm is None
