"""How a cause becomes a finding: severity, recoverable share, speed-up."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from typing import Final

from .code_places import fetching_unseen
from .findings import Evidence, Finding, Kind, MissingSignal, Severity, Signal, find_missing
from .forecast.gain import Gain
from .forecast.interval import interval_of
from .format import percent
from .on_device import on_device
from .statistics import Share, error_of, probability_above
from .thresholds import hysteresis as limits
from .thresholds.causes import MACHINE_FULL
from .thresholds.samples import LEAST_STACKS
from .window import SampleWindow, StepWindow, Window

MADE_AND_COPIED: Final = "made-and-copied"
"""Of a host's cause that holds its copies to the GPU too (`rules.made_and_copied`)."""


def speedup_of(share: float, floor: float = 0.0) -> float:
    """Steps a second after over before: P / max(P - cause, S/W), all as shares of P."""
    return 1.0 / min(1.0, max(limits.LEAST_LEFT, 1.0 - share, floor))


def recoverable(finding: Finding) -> float:
    """R = 1 - P'/P; the share itself where no speed-up is known. Of an optimizer, which no fix
    takes away, what its first advice gives back; else what one may give back of the bound."""
    back = finding.share or 0.0
    if finding.speedup is not None and finding.speedup >= 1.0:
        back = 1.0 - 1.0 / finding.speedup
    if finding.kind == "optimizer" and finding.speedup_is == "bound":
        fix = finding.forecast
        if fix is not None and (fix.speedup < (finding.speedup or 1.0) or fix.low > 1.0):
            return min(back, 1.0 - 1.0 / max(1.0, fix.speedup))
        back *= limits.UPDATE_SAVES  # no forecast, or one without any of it
    return back


def held_by(finding: Finding) -> float:
    """The part of the time that it holds, 0 to 1; 0 of what has none."""
    return finding.share or 0.0


def worth(finding: Finding) -> float:
    """What makes a cause a verdict: the part of the step that a fix would give back
    (`recoverable`). That is more than the part that the cause holds where others hide it, as
    launches that take as long as the Python between them: by an estimate, and of a cause that
    surely holds some."""
    back, low = recoverable(finding), finding.share_low or 0.0
    if finding.speedup_is == "estimate" and low > limits.ENTER_LOW:
        return back
    return min(finding.share or 0.0, back)


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


def of_net(
    sub: str,
    share: Share,
    headline: str,
    evidence: Iterable[Evidence],
    advice: Iterable[str],
) -> Finding:
    """What a net computes and need not: all of its share comes back, as well as that is known."""
    found = cause("compute", sub, share, headline, tuple(evidence), tuple(advice))
    shares = share.mean, share.low, share.high
    return replace(found, forecast=interval_of("compute", speedup_of(share.mean), *shares))


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


def beats(one: Finding, other: Finding, margin: float = 0.0) -> float:
    """P(`one` is worth more than `other` less a margin)."""
    return probability_above(worth(one) + margin, spread_of(one), worth(other), spread_of(other))


def within_the_wall(top: Finding, others: Sequence[Finding]) -> list[Finding]:
    """The others, in their order, with shares that add up to what the first leaves of the time at
    most: each moment belongs to one cause. One of which hardly anything is left goes, and one that
    still holds more than the first says why it is not the first."""
    left, kept = 1.0 - (top.share or 0.0), []
    for one in others:
        if top.sub == MADE_AND_COPIED and one.kind == "h2d":
            continue  # the first holds all of it
        if one.share is None:
            kept.append(one)
            continue
        share = min(one.share, left)
        if share < min(one.share, limits.CONTRIBUTOR):
            continue
        left -= share
        kept.append(_beside(top, one if share == one.share else _cut(one, share, top)))
    return kept


def with_share(finding: Finding, share: float) -> Finding:
    """Of a smaller part of the time."""
    low, high = finding.share_low, finding.share_high
    return replace(
        finding,
        severity=severity_of(share),
        share=share,
        share_low=None if low is None else min(low, share),
        share_high=None if high is None else min(high, share),
    )


def _cut(other: Finding, share: float, top: Finding) -> Finding:
    """Its clause has all that the cause holds: it says what the smaller share is."""
    headline = f"{other.headline} ({percent(share)} not counted under {top.kind})"
    return replace(with_share(other, share), headline=headline)


def _beside(top: Finding, other: Finding) -> Finding:
    if top.share is None or other.share is None or other.share <= top.share:
        return other
    why = f"a fix gives back about {percent(worth(other))}, {top.kind}'s {percent(worth(top))}"
    if worth(other) > worth(top):
        why = "not for long enough to be the verdict"
    return replace(other, headline=f"{other.headline}; {why}")


def none_above(seen: Sequence[Finding]) -> list[Finding]:
    """What may stand beside "no cause above 10 %": no larger share, and of a larger one whose fix
    would give back less only that."""
    found = []
    for one in seen:
        if (one.share or 0.0) <= limits.ENTER_SHARE:
            found.append(one)
        elif limits.CONTRIBUTOR <= worth(one) <= limits.ENTER_SHARE:
            headline = f"{one.headline}; a fix gives back about {percent(worth(one))}"
            found.append(replace(with_share(one, worth(one)), headline=headline))
    return found


def unsure(seen: Sequence[Finding], top: Finding | None) -> Finding:
    """ "not sure: input 34% or launch 31%": in place of a headline that is less likely right than
    not, the two causes that are worth most; the headline's own, `top`, is one of them."""
    others = [one for one in seen if one.share and (top is None or one.kind != top.kind)]
    most = sorted(others, key=worth, reverse=True)[:1]
    two = sorted(([top] if top is not None else []) + most, key=worth, reverse=True)
    names = [f"{one.kind} {percent(one.share or 0.0)}" for one in two]
    names += ["nothing"] if len(names) < 2 else []
    evidence = tuple(one.evidence[0] for one in two if one.evidence)
    advice = tuple(one.advice[0] for one in two if one.advice)
    headline = f"not sure: {' or '.join(names)}" if two else "not sure: nothing stands out so far"
    return state("incomplete", "unsure", "info", headline, evidence, advice)


def confidence_in_cause(top: Finding, others: Iterable[Finding], window: Window) -> float:
    """For a cause that holds: that it is above 5 %, and no other far above it: of two that are
    about as large either is right."""
    sure = probability_above(top.share or 0.0, spread_of(top), limits.ENTER_LOW)
    for other in others:
        if other.kind != top.kind and other.share is not None:
            sure = min(sure, beats(top, other, limits.SWAP_MARGIN))
    return sure * top.goes_on * evidence_factor(window) * window.attributed


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
            held = min(other.share, worth(other))
            sure = min(sure, 1.0 - probability_above(held, error, limit))
    return sure * evidence_factor(window) * window.attributed


def evidence_factor(window: Window) -> float:
    """What the missing signals cost. On a CPU-only run the host clock is the truth; without a probe
    the cap on the confidence is what all of it costs (`SAMPLED_MOST_CONFIDENT`)."""
    if isinstance(window, SampleWindow):
        return limits.EVIDENCE_OTHERS_UNKNOWN if _others_unknown(window) else 1.0
    blind = window.gpu_present and on_device(window) is None
    factor = limits.EVIDENCE_HOST_ONLY_ON_GPU if blind else 1.0
    if window.stacks is None or window.stacks.main_samples < LEAST_STACKS:
        clocked = window.gpu_present and not blind
        factor *= limits.EVIDENCE_NO_STACKS_ON_GPU if clocked else limits.EVIDENCE_NO_STACKS
    if not window.sees_loading:
        factor *= _without_loader(window)
    if _others_unknown(window):
        factor *= limits.EVIDENCE_OTHERS_UNKNOWN
    return factor


def _without_loader(window: StepWindow) -> float:
    """How likely batches take no more than a cause must, where samples tell."""
    unseen = fetching_unseen(window)
    if window.gpu_present or unseen >= limits.LEAST_SURE:
        return limits.EVIDENCE_NO_LOADER
    return 1.0 - unseen


def missing_of(window: Window) -> tuple[MissingSignal, ...]:
    """Signals that could not be had, by their sources and by what the window lacks."""
    missing = list(window.missing)

    def add(signal: Signal, why: str) -> None:
        missing.append(MissingSignal(signal, why))

    device = on_device(window)
    if window.gpu_present and device is None:
        add("gpu clock", "not measured: waits are as the host sees them")
    if device is not None and device.abstains:
        add("gpu lag", "the clocks are not aligned well enough to separate launch from compute")
    if window.stacks is None and find_missing(missing, "stacks") is None:
        add("stacks", "none yet")
    if _others_unknown(window):
        add("nvml", "does not report what other processes use of the GPU")
    if window.host.run_delay is None and (window.machine_cpu_percent or 0.0) >= MACHINE_FULL:
        add("run delay", "not reported by this kernel: waits for a core do not show")
    activity = window.activity
    if activity is not None and activity.throttled and activity.clock_lost is None:
        add("nvml", "no clocks: the cost of throttling is unknown")
    return tuple(dict.fromkeys(missing))


def _others_unknown(window: Window) -> bool:
    """Others hold a context on the GPU, and their use of it is unknown."""
    activity = window.activity
    return activity is not None and activity.others > 0 and activity.others_sm is None
