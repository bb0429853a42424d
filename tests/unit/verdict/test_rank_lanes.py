"""Ranks as lanes: what each does, waits and exchanges adds up to the step, and who differs."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.job.facts import Job
from gpuwatch.tui.verdict.job.lanes import lanes_of, standing_out
from gpuwatch.tui.verdict.job.standing import Pending
from tests.unit.verdict.jobs import STEP_MS, ddp, exchange, job, late_each_step, rank


def two(late_ms: float = 20.0) -> Job:
    """Rank 1 is in Python for so long, and rank 0 waits for it in its backward."""
    return job(
        rank(0, target=True, data=1.0),
        rank(1, data=1.0, other=late_ms),
        exchange=late_each_step(1, late_ms),
    )


def test_all_lanes_are_as_long_as_the_step() -> None:
    lanes = lanes_of(two())
    assert [lane.step_ms for lane in lanes] == pytest.approx([STEP_MS, STEP_MS])


def test_the_late_ranks_lane_is_its_own_and_the_others_wait() -> None:
    first, late = lanes_of(two())
    assert (first.waits_ms, late.waits_ms) == pytest.approx((20.0, 0.0))
    assert late.own_ms["other"] == pytest.approx(20.0)
    assert first.own_ms["backward"] == pytest.approx(STEP_MS - 20.0 - 1.0)


def test_a_host_that_waits_elsewhere_than_in_its_backward_has_shorter_phases() -> None:
    """Where it reads a result its wait stands in another phase."""
    run = job(rank(0, other=STEP_MS - 2.0), rank(1), exchange=late_each_step(1, 20.0))
    first = lanes_of(run)[0]
    assert sum(first.own_ms.values()) == pytest.approx(STEP_MS - 20.0)


def test_exchange_that_compute_does_not_hide_has_its_part() -> None:
    samples = ({0: ddp(8.0, 3.0), 1: ddp(8.0, 3.0)},) * 3
    run = job(rank(0), rank(1), exchange=exchange(*[(1, 0.0)] * 60, ddp=samples, transfer_ms=6.0))
    assert [lane.transfer_ms for lane in lanes_of(run)] == pytest.approx([5.0, 5.0])


def test_without_collectives_the_phases_are_all_there_is() -> None:
    (lane,) = lanes_of(job(rank(0, data=7.0), exchange=None))
    assert (lane.waits_ms, lane.transfer_ms, lane.own_ms["data"]) == (None, None, 7.0)


def many(late: int = 40, by_ms: float = 9.0) -> Job:
    ranks = [rank(number) for number in range(64)]
    return job(*ranks, exchange=exchange(*[(late, by_ms)] * 60, ranks=64))


def test_of_many_ranks_the_late_one_differs() -> None:
    assert standing_out(many()) == (40,)


def test_of_many_ranks_that_are_alike_none_differs() -> None:
    even = job(*[rank(n) for n in range(64)], exchange=exchange(*[(0, 0.0)] * 60, ranks=64))
    assert standing_out(even) == ()
    assert standing_out(job(*[rank(n) for n in range(64)], exchange=None)) == ()


def test_without_collectives_a_rank_differs_by_its_phases() -> None:
    ranks = [rank(n, data=9.0 if n == 7 else 0.4) for n in range(64)]
    assert standing_out(job(*ranks, exchange=None)) == (7,)


def test_who_has_ended_or_is_absent_comes_first() -> None:
    pending = Pending(9, "all_reduce", None, inside=(0,), outside=(5,))
    assert standing_out(replace(many(), ended=(3,), pending=pending)) == (3, 5, 40)
