"""One job of several ranks: what is kept of their collectives, and for how long."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.messages import DdpTimes
from gpuwatch.tui.model.observations import CollectivesSeen, PendingSeen
from gpuwatch.tui.recording.tape import kept
from gpuwatch.tui.session.ranks import MOST_SAMPLES, RankStore
from gpuwatch.tui.verdict.job.exchange import Fabric, RankDdp, StepExchange
from gpuwatch.tui.verdict.job.late import late_rank, takes_turns
from gpuwatch.tui.verdict.job.standing import StandingRank
from gpuwatch.tui.verdict.rules.straggler import late_finding
from gpuwatch.tui.verdict.thresholds.ranks import KEPT_STEPS, MOST_STEPS, READ_NS, STALE_NS
from tests.unit.session.making import MS, S
from tests.unit.session.test_rank_store import PID, seen, use


def store_of(*at_s: float, **fields: Any) -> RankStore:
    """Two ranks, read at these seconds."""
    store = RankStore(PID)
    for at in at_s:
        store.seen(seen(at, use(0, at), use(1, at, **fields)))
    return store


def exchanged(
    at_s: float, steps: int, step_ms: int = 100, first: int = 0, **fields: Any
) -> CollectivesSeen:
    """Steps of which rank 0 waits a fifth for rank 1."""
    wait = step_ms * MS // 5
    rows = tuple(
        StepExchange(n, step_ms * MS, 4, 1024, MS, (wait, 0), (0, wait))
        for n in range(first, first + steps)
    )
    given: dict[str, Any] = {"ranks": (0, 1), **fields}
    return CollectivesSeen(t_ns=round(at_s * S), steps=rows, **given)


def test_a_job_of_one_has_none() -> None:
    assert RankStore(PID).job(S) is None


def test_what_the_collectives_show_of_the_target() -> None:
    store = store_of(1, 2)
    store.exchanged(exchanged(2, 40))
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is not None
    assert job.exchange.waiting(0).mean == pytest.approx(0.2)
    own = store.in_collectives(job)
    assert own is not None
    assert (own.waiting, own.transfer) == pytest.approx((0.2, 0.01))


def test_with_gpus_steps_whose_collectives_were_not_timed_are_dropped() -> None:
    """Recordings of before have them by the moments of issuing, at which hosts are far ahead."""
    store = store_of(1, 2, device=0)
    timed = exchanged(2, 40)
    untimed = [msgspec.structs.replace(one, transfer_ns=None) for one in timed.steps[:15]]
    mixed = msgspec.structs.replace(timed, steps=(*untimed, *timed.steps[15:]))
    store.exchanged(mixed)
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is not None
    assert [one.number for one in job.exchange.steps] == list(range(15, 40))


def test_collectives_of_long_ago_show_nothing_of_now() -> None:
    store = store_of(1, 2)
    store.exchanged(exchanged(2, 40))
    job = store.job(3 * S + STALE_NS)
    assert job is not None
    assert job.exchange is None
    assert store.in_collectives(job) is None


def test_steps_of_half_a_minute_are_kept_and_twenty_at_the_least() -> None:
    store = store_of(1, 2)
    for at in range(10):
        store.exchanged(exchanged(at, 100, first=100 * at))
    job = store.job(10 * S)
    assert job is not None
    assert job.exchange is not None
    assert len(job.exchange.steps) == 300
    store.exchanged(exchanged(10, KEPT_STEPS, step_ms=5_000, first=1_000))
    long = store.job(10 * S)
    assert long is not None
    assert long.exchange is not None
    assert len(long.exchange.steps) == KEPT_STEPS


def test_other_ranks_are_another_matter() -> None:
    store = store_of(1, 2)
    store.exchanged(exchanged(2, 40))
    store.exchanged(exchanged(3, 0, ranks=(0, 2)))
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is None


def test_a_process_that_counts_its_steps_anew_has_no_past() -> None:
    """It ended the monitor, once no step of before was left: all that were kept had lower numbers
    than the first since rank 1 is late."""
    store = store_of(1, 2)
    for at in range(10):
        store.exchanged(stepping(3 * at, 5_000 + 30 * at, lambda step: step >= 5_105))
    for at in range(80):
        store.exchanged(stepping(30 + 3 * at, 30 * at, lambda step: True))
    job = store.job(270 * S)
    assert job is not None
    assert job.exchange is not None
    assert job.exchange.steps[-1].number == 80 * 30 - 1
    found = job.exchange.lateness[1]
    assert (found.first_step, found.since_step) == (0, None)


def test_of_a_reading_in_which_steps_are_counted_anew_those_since_then_are_kept() -> None:
    store = store_of(1, 2)
    store.exchanged(exchanged(2, 40, first=5_000))
    before, since = exchanged(3, 5, first=5_040), exchanged(3, 7)
    store.exchanged(msgspec.structs.replace(since, steps=(*before.steps, *since.steps)))
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is not None
    assert [one.number for one in job.exchange.steps] == list(range(7))


def test_what_a_rank_waited_before_it_was_started_anew_shows_nothing_of_now() -> None:
    """Rank 0, by which steps are counted, lives on."""
    store = store_of(1, 2)
    store.exchanged(exchanged(2, 40))
    store.seen(seen(3, use(0, 3), use(1, 3, pid=99)))
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is None


def test_ddps_samples_are_kept_by_iteration_and_bounded() -> None:
    store = store_of(1, 2)
    for iteration in range(100):
        times = DdpTimes(iteration, iteration, 0, 0, 0, 0, 0, 0, 1)
        ddp = tuple(RankDdp(rank, times) for rank in (0, 1))
        store.exchanged(exchanged(2, 1, first=iteration, ddp=ddp))
    job = store.job(3 * S)
    assert job is not None
    assert job.exchange is not None
    assert [one[0].iteration for one in job.exchange.ddp] == list(range(100 - MOST_SAMPLES, 100))


def test_what_stands_is_forgotten_when_it_moves() -> None:
    store = store_of(1, 2)
    store.pending_seen(PendingSeen(t_ns=S, number=7, name="all_reduce", inside=(0,), outside=(1,)))
    job = store.job(2 * S)
    assert job is not None
    assert job.pending is not None
    assert job.pending.outside == (1,)
    store.pending_seen(PendingSeen(t_ns=2 * S, number=-1))
    later = store.job(2 * S)
    assert later is not None
    assert later.pending is None


def test_where_ranks_are_that_stand_in_no_collective_is_in_the_job() -> None:
    store = store_of(1, 2)
    places = (StandingRank(1, ("main (train.py:3)",), stays=True),)
    store.pending_seen(PendingSeen(t_ns=S, number=-1, ranks=places))
    job = store.job(2 * S)
    assert job is not None
    assert (job.pending, job.places) == (None, places)
    store.pending_seen(PendingSeen(t_ns=2 * S, number=-1))
    later = store.job(2 * S)
    assert later is not None
    assert later.places == ()


def test_a_rank_that_has_ended_is_in_the_job_as_that() -> None:
    job = store_of(1, 2, running=False).job(2 * S)
    assert job is not None
    assert job.ended == (1,)
    assert [one.rank for one in job.ranks] == [0]


def test_a_recording_keeps_them_as_they_are() -> None:
    one = exchanged(2, 3)
    rows = tuple(msgspec.structs.replace(row, ahead_ns=(1_234, 0)) for row in one.steps)
    one = msgspec.structs.replace(one, steps=rows)
    assert kept(one) == one
    fast = kept(msgspec.structs.replace(one, fabric=Fabric(1 << 30, 4_321_999, 1_234_999)))
    assert fast.fabric == Fabric(1 << 30, 4_321_000, 1_234_000)
    assert kept(fast) == fast
    stands = PendingSeen(t_ns=S, number=7, ranks=(StandingRank(1, ("main (train.py:3)",)),))
    assert kept(stands) == stands


def test_a_job_is_being_read_until_its_collectives_are_known_or_too_long() -> None:
    store = store_of(1, 2)
    soon, late = (store.job(at) for at in (3 * S, 2 * S + READ_NS))
    assert soon is not None
    assert late is not None
    assert (soon.reading, late.reading) == (True, False)
    store.exchanged(exchanged(2, 40))
    read = store.job(3 * S)
    assert read is not None
    assert not read.reading


def stepping(at_s: float, first: int, late: Callable[[int], bool]) -> CollectivesSeen:
    """Thirty steps of 100 ms, of which rank 0 waits 30 ms for rank 1 in those that are late."""
    rows = tuple(
        StepExchange(n, 100 * MS, 4, 1024, MS, (30 * MS, 0), (0, 30 * MS))
        if late(n)
        else StepExchange(n, 100 * MS, 4, 1024, MS, (0, 0), (0, 0))
        for n in range(first, first + 30)
    )
    return CollectivesSeen(t_ns=round(at_s * S), ranks=(0, 1), steps=rows)


def test_a_rank_that_becomes_late_is_dated_and_judged_by_what_came_since() -> None:
    """Rank 1 is slow from step 1,105 on."""
    store = store_of(1, 2)
    for at in range(10):
        first = 1_000 + 30 * at
        store.exchanged(stepping(3 * at, first, lambda step: step >= 1_105))
    store.seen(seen(27, use(0, 27), use(1, 27, data_ns=S // 2)))
    job = store.job(30 * S)
    assert job is not None
    assert job.exchange is not None
    assert [one.number for one in job.exchange.steps] == list(range(1_105, 1_300))
    late = late_rank(job)
    assert late is not None
    assert (late.rank.rank, late.by) == (1, "data")
    assert late.share.mean == pytest.approx(0.3)
    assert late.lateness is not None
    assert (late.lateness.since_step, late.lateness.known_before) == (1_105, 1_104)
    assert late.lateness.age_s == pytest.approx(30 - 9 + 1.4, abs=0.01), "by its readings"
    headline = late_finding(job, late).headline
    assert headline == (
        "rank 1 waits for its loader: the other 3 wait for it 30% of each step, since step 1,105 "
        "(22 s ago)"
    )


@pytest.mark.parametrize(("late_until", "is_named"), [(1_190, False), (1_210, True)])
def test_a_rank_that_is_late_no_more_is_named_for_ten_more_seconds(
    late_until: int, is_named: bool
) -> None:
    """So long the phases of ranks are means of, and a change of a few seconds is not for good."""
    store = store_of(1, 2)
    for at in range(10):
        store.exchanged(stepping(3 * at, 1_000 + 30 * at, lambda step: step < late_until))
    job = store.job(30 * S)
    assert job is not None
    assert (late_rank(job) is not None) is is_named


def test_the_date_outlives_the_steps_that_are_judged_and_memory_is_bounded() -> None:
    store = store_of(1, 2)
    for at in range(400):
        store.exchanged(stepping(3 * at, 30 * at, lambda step: step >= 6_000))
    store.seen(seen(1_200, use(0, 1_200), use(1, 1_200)))
    job = store.job(1_200 * S)
    assert job is not None
    assert job.exchange is not None
    found = job.exchange.lateness[1]
    assert (found.since_step, found.known_before) == (6_000, 5_999)
    assert found.age_s == pytest.approx(600, abs=3)
    assert found.first_step < 100


def test_where_collectives_are_not_read_marks_date_a_late_rank() -> None:
    """Rank 1 waits half a second more for its data from the 40th second on."""
    store = RankStore(PID)
    for at in range(1, 81):
        slow: dict[str, Any] = {"data_ns": 700 * MS, "backward_ns": 0} if at >= 40 else {}
        store.seen(seen(at, use(0, at), use(1, at, **slow)))
    job = store.job(80 * S)
    assert job is not None
    late = late_rank(job)
    assert late is not None
    assert (late.rank.rank, late.by, late.from_collectives) == (1, "data", False)
    assert late.lateness is not None
    assert (late.lateness.since_step, late.lateness.known_before) == (400, 390)
    assert "since between steps 390 and 400 (40 s ago)" in late_finding(job, late).headline


def test_a_burst_of_a_few_seconds_names_nobody_where_ranks_take_turns() -> None:
    """As a neighbour on its cores makes one rank the last in 16 of 26 steps (gloo, four ranks)."""
    store, chance = store_of(1, 2), random.Random(4)
    for at in range(1, 11):
        burst = [1] * 16 + [chance.randrange(4) for _ in range(10)]
        chance.shuffle(burst)
        last = burst if at == 10 else [chance.randrange(4) for _ in range(30)]
        rows = []
        for number, rank in enumerate(last, start=1_000 + 30 * at):
            late = tuple(30 * MS if one == rank else 0 for one in range(4))
            waits = tuple(0 if one == rank else 30 * MS for one in range(4))
            rows.append(StepExchange(number, 100 * MS, 1, 1024, None, waits, late))
        read = CollectivesSeen(t_ns=3 * at * S, ranks=(0, 1, 2, 3), steps=tuple(rows))
        store.exchanged(read)
    store.seen(seen(30, *(use(rank, 30) for rank in range(4))))
    job = store.job(31 * S)
    assert job is not None
    assert late_rank(job) is None
    assert takes_turns(job) is not None


def quick_then_slow(reads_s: tuple[int, ...]) -> RankStore:
    """Steps of 1 ms in which two ranks take turns for ten seconds, read twice; then rank 1 waits 40
    ms for its data in each."""
    store, number = RankStore(PID), 0
    quick = {"counted": 1_000, "data_ns": 100 * MS, "backward_ns": 500 * MS}
    for at in range(1, reads_s[-1] + 1):
        victim, culprit = quick, quick
        if at > 10:
            slow = {"counted": 24, "data_ns": 5 * MS, "backward_ns": 980 * MS}
            victim = culprit = slow
            culprit = {**slow, "data_ns": 965 * MS, "backward_ns": 20 * MS}
        store.seen(seen(at, use(0, at, **victim), use(1, at, **culprit)))
        rows: list[StepExchange] = []
        if at in (4, 8):
            waits = [(200_000, 0) if one % 2 else (0, 200_000) for one in range(1_000)]
            rows = [
                StepExchange(number + one, MS, 1, 1024, None, wait, (wait[1], wait[0]))
                for one, wait in enumerate(waits)
            ]
        elif at in reads_s:
            since = max(10, *(one for one in (0, *reads_s) if one < at))
            rows = [
                StepExchange(number + one, 41 * MS, 1, 1024, None, (40 * MS, 0), (0, 40 * MS))
                for one in range(24 * (at - since))
            ]
        number += len(rows)
        if rows:
            read = CollectivesSeen(t_ns=at * S, ranks=(0, 1), steps=tuple(rows))
            store.exchanged(read)
    return store


def test_a_late_rank_is_named_although_quick_steps_of_before_are_more() -> None:
    """It was "ranks take turns at being late" for ten seconds: 48 steps of 2,048."""
    job = quick_then_slow((12,)).job(12 * S)
    assert job is not None
    assert takes_turns(job) is None
    late = late_rank(job)
    assert late is not None
    assert (late.rank.rank, late.by) == (1, "data")
    quick = MOST_STEPS - 48
    lost_ms = 48 * 40 + quick / 2 * 0.2
    assert late.share.mean == pytest.approx(lost_ms / (quick + 48 * 41), rel=0.01)


def test_a_rank_that_is_late_in_each_step_is_judged_by_these_alone_after_two_readings() -> None:
    job = quick_then_slow((12, 15)).job(15 * S)
    assert job is not None
    late = late_rank(job)
    assert late is not None
    assert (late.rank.rank, late.by) == (1, "data")
    assert late.share.low > 0.9
    assert late.own_ms == pytest.approx(965 / 24, rel=0.01), "the marks are those of since then"
