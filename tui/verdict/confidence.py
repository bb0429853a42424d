"""How sure a verdict is: P(it is the top cause) x evidence x coverage (diagnosis 5)."""

from collections.abc import Iterable

from tui.verdict import policy
from tui.verdict.bound import recoverable
from tui.verdict.device import on_device
from tui.verdict.findings import Finding
from tui.verdict.ratio import error_of, probability_above
from tui.verdict.spent import spent
from tui.verdict.window import Window


def spread_of(finding: Finding) -> float:
    """Standard error of a finding's share."""
    if finding.share is None or finding.share_low is None or finding.share_high is None:
        return 0.0
    return error_of(finding.share, finding.share_low, finding.share_high)


def beats(one: Finding, other: Finding) -> float:
    """P(`one` is worth more than `other`)."""
    return probability_above(recoverable(one), spread_of(one), recoverable(other), spread_of(other))


def of_cause(top: Finding, others: Iterable[Finding], window: Window) -> float:
    """For a cause that holds: that it is above 5 % and above every other."""
    sure = probability_above(top.share or 0.0, spread_of(top), policy.ENTER_LOW)
    for other in others:
        if other.kind != top.kind and other.share is not None:
            sure = min(sure, beats(top, other))
    return sure * evidence_factor(window) * spent(window.steps).attributed


def of_nothing(others: Iterable[Finding], window: Window) -> float:
    """For the verdict that nothing is wrong: that no cause is above 10 %."""
    sure = 1.0
    for other in others:
        if other.share is not None:
            above = probability_above(other.share, spread_of(other), policy.ENTER_SHARE)
            sure = min(sure, 1.0 - above)
    return sure * evidence_factor(window) * spent(window.steps).attributed


def evidence_factor(window: Window) -> float:
    """What the missing signals cost. On a CPU-only run the host clock is the truth."""
    blind = window.gpu_present and on_device(window) is None
    factor = policy.EVIDENCE_HOST_ONLY_ON_GPU if blind else 1.0
    if window.stacks is None or window.stacks.main_samples < policy.LEAST_STACKS:
        factor *= policy.EVIDENCE_NO_STACKS
    if not any(row.fetches for row in window.steps):
        factor *= policy.EVIDENCE_NO_LOADER
    return factor


def missing_of(window: Window) -> tuple[str, ...]:
    """Signals that were not there, and why."""
    told = list(window.missing)
    device = on_device(window)
    if window.gpu_present and device is None:
        told.append("gpu clock: not measured, waits are the host's")
    if device is not None and device.abstains:
        told.append("gpu lag: the clocks are not aligned well enough to tell launch from compute")
    if window.stacks is None and not any(line.startswith("stacks") for line in told):
        told.append("stacks: none yet")
    return tuple(dict.fromkeys(told))
