"""How much of what the others wait for a late rank can go: by what stays without it."""

from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.messages import DdpTimes
from gpuwatch.tui.verdict.job.facts import ExchangeFacts, emptiness
from gpuwatch.tui.verdict.job.late import LateRank, late_rank, takes_turns
from tests.unit.verdict.jobs import ddp, exchange, job, late_each_step, rank
from tests.unit.verdict.windows import MS


def balanced(**fields: Any) -> ExchangeFacts:
    """Two H200s: rank 0 comes 0.6 ms late to the seven all-reduces of a step of 9.4 ms, and DDP
    measures that nobody waits for it behind his backward."""
    sample = {one: timed(4.9, 4.57 - 0.02 * one, **fields) for one in (0, 1)}
    return exchange(*[(0, 0.6)] * 60, step_ms=9.4, collectives=7, ddp=(sample,))


def timed(comm_ms: float, overlap_ms: float, **fields: Any) -> DdpTimes:
    given: dict[str, Any] = {"buckets": 7, "forward_ms": 2.6, "backward_ms": 6.0, **fields}
    forward_ns, backward_ns = (
        round(given.pop(f"{one}_ms") * MS) for one in ("forward", "backward")
    )
    return ddp(comm_ms, overlap_ms, forward_ns=forward_ns, backward_ns=backward_ns, **given)


def test_waits_that_ddp_measures_behind_the_backward_cost_nothing() -> None:
    run = job(rank(0, busy=99.0), rank(1, busy=99.0), exchange=balanced())
    assert late_rank(run) is None
    assert takes_turns(run) is None, "one is late all the time, and it costs nothing"


@pytest.mark.parametrize(
    "fields",
    [{"buckets": 5}, {"forward_ms": 1.0, "backward_ms": 3.0}],
    ids=["collectives that are not ddp's", "iterations from before a neighbour came"],
)
def test_samples_that_are_not_of_these_steps_excuse_nobody(fields: dict[str, Any]) -> None:
    run = job(rank(0, busy=99.0), rank(1, busy=99.0), exchange=balanced(**fields))
    late = late_rank(run)
    assert late is not None
    assert (late.rank.rank, late.at_most) == (0, True)
    assert late.share.mean == pytest.approx(0.6 / 9.4, abs=0.001)


def test_rare_late_steps_that_no_sample_met_are_late() -> None:
    """A save every twelve steps beside jitter in each."""
    sample = {one: timed(4.9, 4.57, forward_ms=9.0, backward_ms=24.0) for one in (0, 1)}
    steps = [(0, 200.0 if step % 12 == 0 else 0.9) for step in range(60)]
    rare = exchange(*steps, collectives=7, ddp=(sample,))
    late = late_rank(job(rank(0, checkpoint=16.0, busy=40.0), rank(1, busy=99.0), exchange=rare))
    assert late is not None
    assert late.by == "checkpoint"


def test_a_pause_gives_back_no_more_than_its_gpu_idles() -> None:
    """Two H200s, a save every twelve steps: the other waits 58 ms of 66.6, and is sped up 6.4x, as
    the late rank's GPU works 15.8 % of the time. 40 to 64x was forecast."""
    pauses = exchange(*[(0, 36.0)] * 60)
    late = late_rank(job(rank(0, checkpoint=21.0, busy=15.8), rank(1, busy=99.8), exchange=pauses))
    assert late is not None
    assert late.share.mean == pytest.approx(0.842, abs=0.001)
    coarse = late_rank(
        job(rank(0, checkpoint=21.0, busy=89.0), rank(1, busy=99.8), exchange=pauses)
    )
    assert coarse is not None
    assert coarse.share.mean == pytest.approx(21 / 37, abs=0.01), "NVML counts gaps as busy"


def test_the_transfer_stays_and_what_the_others_compute() -> None:
    moves = exchange(*[(1, 20.0)] * 60, transfer_ms=22.2)
    late = late_rank(job(rank(0, busy=99.0), rank(1, busy=99.0), exchange=moves))
    assert late is not None
    assert late.share.mean == pytest.approx(0.4, abs=0.001)
    rarely = {one: timed(4.9, 4.57, forward_ms=8.5, backward_ms=20.0) for one in (0, 1)}
    computes = exchange(*[(1, 20.0)] * 60, collectives=9, ddp=(rarely,))
    late = late_rank(job(rank(0, busy=99.0), rank(1, busy=99.0), exchange=computes))
    assert late is not None
    assert late.share.mean == pytest.approx(1 - 28.5 / 37, abs=0.001)


def test_nobody_waits_longer_than_its_gpu_is_emptier_than_the_late_ones() -> None:
    """Balanced FSDP2 on two H200s: rank 1 waits 10 % of a step in collectives that its own kernels
    hide; by a profiler 1 % of a step is lost. GPU 0 has a clock 4 % lower."""
    facts = replace(late_each_step(0, 3.7), paced_ns=37.0 * MS)
    ranks = rank(0, active=99.3, sm=91.0), rank(1, active=99.3, sm=89.7)
    assert late_rank(job(*ranks, exchange=facts)) is None
    unknown = late_rank(job(rank(0, busy=99.3), rank(1, busy=99.3), exchange=facts))
    assert unknown is not None, "without the counters of both it is a bound"
    assert unknown.at_most
    waits = rank(0, active=99.8, sm=92.8), rank(1, active=99.8, sm=55.7)
    late = late_rank(job(*waits, exchange=late_each_step(0, 25.0)))
    assert late is not None
    assert late.share.mean == pytest.approx(emptiness(92.8, 55.7), abs=0.001)


def test_short_gaps_of_a_gpu_are_no_compute() -> None:
    """FSDP2 on two H200s: rank 1's GPU does nothing for 26 % of the time, in gaps that NVML counts
    as busy (93 %): its host is late, not its kernels."""
    slow = rank(1, busy=93.0, active=74.0, sm=39.8)
    late = late_rank(job(rank(0, active=98.1, sm=46.6), slow, exchange=late_each_step(1, 14.0)))
    assert late is not None
    assert late.by == "launch"
    assert late.share.mean == pytest.approx(0.628 - 0.417, abs=0.002)


def test_shares_are_of_the_pace_and_not_of_a_hosts_single_steps() -> None:
    """Hosts queue twenty steps within three, and wait for the rest where they read the loss: of a
    window of 36 steps one monitor had 13.0 ms a step, another of 85 had 16.1, in truth 16.9."""
    late_ms, paced_ns = 7.15, 16.9 * MS
    for steps_ms in ([3.0] * 30 + [80.0] * 6, [3.0] * 54 + [40.0] * 6):
        queued = exchange(*[(1, late_ms)] * len(steps_ms))
        rows = [
            msgspec.structs.replace(one, wall_ns=round(wall_ms * MS))
            for one, wall_ms in zip(queued.steps, steps_ms, strict=True)
        ]
        facts = replace(queued, steps=tuple(rows), paced_ns=paced_ns)
        found = facts.late(1)
        assert found.mean == pytest.approx(late_ms / 16.9, abs=0.001)
        assert found.high - found.low < 0.01, "all steps are alike"
        assert facts.times_late()[1] == len(steps_ms)


def test_what_a_long_iteration_lost_is_a_part_of_that_iteration() -> None:
    """A rank that sleeps on two H200s: DDP timed an iteration of 37.0 ms, the pace is 34.9."""
    sample = {
        0: timed(33.1, 4.99, forward_ms=2.47, backward_ms=6.38),
        1: timed(4.49, 4.14, forward_ms=2.85, backward_ms=5.53),
    }
    steps = exchange(*[(1, 29.0)] * 60, step_ms=34.9, collectives=7, ddp=(sample,))
    whole_ms = 2.47 + 6.38 + 33.1 - 4.99
    late = late_rank(job(rank(0, busy=99.8), rank(1, other=30.0, busy=25.0), exchange=steps))
    assert late is not None
    assert late.share.mean == pytest.approx((28.11 - 0.35) / whole_ms, abs=0.001)


def test_a_pause_that_no_collective_shows_costs_what_the_others_spin_for() -> None:
    """A save on an H200 whose copies to the host come before the call: 2.1x for 7.0x."""
    ranks = rank(0, checkpoint=19.7, other=14.4, busy=13.0), rank(1, busy=99.8)
    late = late_rank(job(*ranks, exchange=None))
    assert late is not None
    assert late.by == "checkpoint"
    assert late.share.mean == pytest.approx(0.868, abs=0.001)


def by_lead(*leads_ms: float) -> LateRank | None:
    """Rank 1 comes 25 ms late to each collective, its GPU idles; all hosts' phases are alike."""
    steps = exchange(*[(1, 25.0)] * len(leads_ms), leads_ms=leads_ms)
    hosts = (rank(0, busy=91.0, active=91.0), rank(1, busy=15.0, active=15.0))
    return late_rank(job(*hosts, exchange=steps))


def test_what_hosts_wait_for_their_devices_is_no_work_of_theirs() -> None:
    """A lead that begins anew in each step is a wait: of a host as slow it would be carried on."""
    draw = Random(3)
    anew = [22.0 + draw.gauss(0, 1.5) for _ in range(40)]
    late = by_lead(*anew)
    assert late is not None
    assert (late.rank.rank, late.by) == (1, "launch")
    assert late.share.mean == pytest.approx(22.0 / 37.0, abs=0.02)
    assert late.behind_ms == pytest.approx(22.0, abs=0.7)
    carried_on = [22.0 + walked for walked in accumulate(draw.gauss(0, 1.5) for _ in range(40))]
    assert by_lead(*carried_on) is None, "two hosts that are slow alike"
    assert by_lead(*anew[:25]) is None, "too few steps"
    drifting = [22.0 + 0.1 * step for step in range(40)]
    drifting[20] += 3.0
    assert by_lead(*drifting) is None, "a single step that is late"


def test_clocks_of_several_hosts_say_nothing_of_leads() -> None:
    draw = Random(3)
    leads = [22.0 + draw.gauss(0, 1.5) for _ in range(40)]
    steps = exchange(*[(1, 25.0)] * 40, leads_ms=leads)
    assert steps.lead(1) is not None
    assert replace(steps, hosts=("node1", "node2")).lead(1) is None
