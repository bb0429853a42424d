"""Clocks of hosts are laid on each other by round trips, and may be off by half of their length."""

import pytest

from gpuwatch.tui.model.observations import CollectivesSeen
from gpuwatch.tui.remote.job import JobMerge
from tests.unit.remote.jobs import report
from tests.unit.remote.test_job import judged
from tests.unit.session.making import MS, S


@pytest.mark.parametrize("error_ms", [-20, -5, 5, 20])
def test_the_error_of_a_clock_is_no_late_host(error_ms: int) -> None:
    """It was "node1 computes longer", in 100 % of steps, where a link was slower one way."""
    _, late = judged(frozenset(), timed=False, error_ns=error_ms * MS, bound_ns=abs(error_ms) * MS)
    assert late is None


@pytest.mark.parametrize("ranks", [frozenset({3}), frozenset({2, 3})])
def test_what_is_waited_beyond_the_error_of_a_clock_is(ranks: frozenset[int]) -> None:
    """Of 40 ms what is left of them in any case, by a clock that may be off by 10."""
    _, late = judged(ranks, timed=False, error_ns=-5 * MS, bound_ns=10 * MS)
    assert late is not None
    assert (late.rank.rank in ranks, late.rank.host) == (True, "node1")
    assert late.share.mean == pytest.approx(0.25, rel=0.1)


def test_a_clock_that_was_not_known_at_first_hides_nothing_later() -> None:
    merge, late_ns = JobMerge("node0"), []
    for second in range(1, 8):
        for host in (0, 1):
            ranks, error_ns = range(2 * host, 2 * host + 2), S if second == 1 else 0
            made = report(second, ranks, 4, frozenset({3}), timed=False)
            merge.add(f"node{host}", made, 0, error_ns)
        for seen in merge.take(second * S, {}):
            if isinstance(seen, CollectivesSeen):
                late_ns.append(seen.steps[-1].late_ns[3])
    assert late_ns == pytest.approx([0, 40 * MS, 40 * MS], rel=0.01)


def test_what_a_rank_waits_for_one_of_its_own_host_is_known_whatever_the_clocks() -> None:
    _, late = judged(frozenset({0}), per_host=3, timed=False, bound_ns=30 * MS)
    assert late is not None
    assert (late.rank.rank, late.node) == (0, None)
    assert late.share.mean == pytest.approx(0.1, rel=0.2), "beyond the other host"
