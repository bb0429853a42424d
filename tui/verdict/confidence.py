"""How sure a verdict is: P(it is the top cause) x evidence x coverage."""

from collections.abc import Iterable
from math import sqrt

from tui.verdict import policy
from tui.verdict.bound import recoverable, worth
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
    """For the verdict that nothing is wrong: that no cause is above 10 %, and none has been missed.

    The error of a wait that comes in bursts grows as the root of its share, so a small share that
    was seen says less about 10 % than its own interval does.
    """
    steps = sum(row.count for row in window.steps)
    sure = max(0.0, 1.0 - policy.MISSED / max(1, steps))
    for other in others:
        if other.share is not None:
            limit = policy.ENTER_SHARE
            error = spread_of(other) * sqrt(max(1.0, limit / max(other.share, policy.CONTRIBUTOR)))
            sure = min(sure, 1.0 - probability_above(worth(other), error, limit))
    return sure * evidence_factor(window) * spent(window.steps).attributed


def evidence_factor(window: Window) -> float:
    """What the missing signals cost. On a CPU-only run the host clock is the truth."""
    blind = window.gpu_present and on_device(window) is None
    factor = policy.EVIDENCE_HOST_ONLY_ON_GPU if blind else 1.0
    if window.stacks is None or window.stacks.main_samples < policy.LEAST_STACKS:
        factor *= policy.EVIDENCE_NO_STACKS
    if not any(row.fetches for row in window.steps):
        factor *= policy.EVIDENCE_NO_LOADER
    if _others_unknown(window):
        factor *= policy.EVIDENCE_OTHERS_UNKNOWN
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
    if _others_unknown(window):
        told.append("nvml: does not tell what other processes use of the GPU")
    if window.run_delay is None and (window.machine_cpu_percent or 0.0) >= policy.MACHINE_FULL:
        told.append("run delay: this kernel does not tell, so a wait for a core does not show")
    activity = window.activity
    if activity is not None and activity.throttled and activity.clock_lost is None:
        told.append("nvml: no clocks, so what throttling costs is not known")
    return tuple(dict.fromkeys(told))


def _others_unknown(window: Window) -> bool:
    """Others hold a context on the GPU, and nobody says what they use of it."""
    told = window.activity
    return told is not None and told.others > 0 and told.others_sm is None
