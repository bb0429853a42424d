"""The workers are fast enough on average, and late now and then."""

from math import ceil

from tui.verdict import policy
from tui.verdict.feeding import Feeding
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence
from tui.verdict.rules.input_explained import Explained
from tui.verdict.window import Window


def burst(window: Window, feeding: Feeding) -> Explained | None:
    """80 % of the wait in 15 % of the steps, while workers have time to spare.

    Batches come back in order, so W workers that are simply too slow make one step in W wait: where
    nobody knows how busy they are, a burst must be rarer than half of that.
    """
    if not feeding.workers:
        return None
    concentration = _concentration([row.data_ns for row in window.steps])
    if concentration > policy.BURST_STEPS:
        return None
    known = window.stacks is not None and window.stacks.worker_samples >= policy.LEAST_STACKS
    if known and feeding.busy is not None:
        if feeding.busy >= policy.BURST_BUSY:
            return None
    elif concentration > 0.5 / feeding.workers:
        return None
    longest = max(row.data_max_ns for row in window.steps)
    evidence = [
        Evidence(
            f"80% of the wait is in {percent(concentration)} of the steps, up to {ms(longest)}",
            "hook",
            longest / 1e6,
            "ms",
        )
    ]
    if known and feeding.busy is not None:
        text = f"workers make a batch only {percent(feeding.busy)} of the time"
        evidence.append(Evidence(text, "py-spy", feeding.busy))
    return Explained("burst", tuple(evidence), _advice(window, feeding, longest))


def _advice(window: Window, feeding: Feeding, longest_ns: int) -> tuple[str, ...]:
    """The queue of W * prefetch batches must outlast the spike."""
    find = "find what makes some batches late: a large sample, a cache that is filled, a retry"
    have = window.loaders[0].prefetch_factor or 2
    if feeding.other_ns <= 0 or not feeding.workers:
        return (find,)
    needed = ceil(policy.WORKER_HEADROOM * longest_ns / feeding.other_ns / feeding.workers)
    if needed <= have:
        return (find,)
    if needed <= policy.MOST_PREFETCH:
        return (
            f"prefetch_factor {have} → {needed}: the queue then outlasts {ms(longest_ns)}",
            find,
        )
    return (find, f"prefetch_factor {have} → {policy.MOST_PREFETCH} would help, but not hide it")


def _concentration(waits_ns: list[int]) -> float:
    """The smallest share of the rows that holds 80 % of the wait."""
    whole = sum(waits_ns)
    if whole <= 0:
        return 1.0
    held = 0
    for taken, wait in enumerate(sorted(waits_ns, reverse=True), start=1):
        held += wait
        if held >= policy.BURST_MASS * whole:
            return taken / len(waits_ns)
    return 1.0
