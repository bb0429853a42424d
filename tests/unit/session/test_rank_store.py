"""What the pages of the ranks say, over some seconds."""

from typing import Any

import pytest

from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.model.observations import CollectivesSeen, Greeted, RanksSeen, RankUse
from gpuwatch.tui.recording.tape import kept
from gpuwatch.tui.session.ranks import RankStore
from gpuwatch.tui.verdict.job.exchange import StepExchange
from gpuwatch.tui.verdict.job.standing import Doing
from tests.unit.session.making import HELLO, MS, S, judged, session

PID = 48213


def use(rank: int, at_s: float, **fields: Any) -> RankUse:
    """Ten steps of 100 ms in the second before, a fifth of them data wait."""
    given: dict[str, Any] = {
        "pid": PID + rank,
        "running": True,
        "state": page.STATE_ARMED,
        "steps": round(10 * at_s),
        "open_kind": marks.FETCH_LEAVE,
        "open_since_ns": round(at_s * S) - 20 * MS,
        "heartbeat_ns": round(at_s * S) - 50 * MS,
        "counted": 10,
        "wall_ns": S,
        "data_ns": 200 * MS,
        "forward_ns": 200 * MS,
        "backward_ns": 500 * MS,
        "optimizer_ns": 50 * MS,
        "device": None,
        **fields,
    }
    return RankUse(rank=rank, **given)


def seen(at_s: float, *ranks: RankUse) -> RanksSeen:
    return RanksSeen(t_ns=round(at_s * S), world_size=4, interval_ns=S, ranks=ranks)


def test_means_are_over_the_last_ten_seconds() -> None:
    store = RankStore(PID)
    for at_s in range(1, 31):
        slow = {"wall_ns": 3 * S, "data_ns": 2 * S} if at_s > 20 else {}
        store.seen(seen(at_s, use(0, at_s), use(1, at_s, **slow)))
    first, second = store.ranks
    assert (first.is_target, second.is_target, store.world_size) == (True, False, 4)
    assert first.step_ms == 100
    assert first.data_share == pytest.approx(0.2)
    assert first.backward_share == pytest.approx(0.5)
    assert second.step_ms == 300
    assert second.data_share == pytest.approx(2 / 3)
    assert second.open_phase == "forward"


def test_long_steps_reach_further_back() -> None:
    store = RankStore(PID)
    for at_s in range(1, 61):
        ended = at_s % 20 == 0
        fields = {"counted": int(ended), "wall_ns": 20 * S * ended, "data_ns": S * ended}
        store.seen(seen(at_s, use(0, at_s, **fields)))
    assert store.ranks[0].step_ms == 20_000


def test_without_a_step_nothing_is_known_and_nothing_is_zero() -> None:
    store = RankStore(PID)
    store.seen(seen(1, use(0, 1, counted=0, wall_ns=0, data_ns=0, backward_ns=0)))
    rank = store.ranks[0]
    assert (rank.step_ms, rank.data_share, rank.backward_share) == (None, None, None)
    assert len(rank.active.levels[0]) == 0


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "live"),
        ({"heartbeat_ns": 6 * S}, "silent"),
        ({"heartbeat_ns": 6 * S, "stopped": True}, "stopped"),
        ({"stopped": True}, "live"),  # who looks at its stack may hold it for a moment
        ({"state": page.STATE_DISARMED}, "unwatched"),
        ({"state": page.STATE_UNINSTALLED}, "unwatched"),
        ({"state": page.STATE_ENDED}, "ended"),
        ({"running": False}, "ended"),
    ],
)
def test_the_state(fields: dict[str, Any], state: str) -> None:
    store = RankStore(PID)
    store.seen(seen(10, use(0, 10, **fields)))
    assert store.ranks[0].state == state


def test_a_rank_without_a_mark_has_no_time_since_its_last() -> None:
    """It was "in starting for 17 h" on a machine that was up for so long."""
    store = RankStore(PID)
    unmarked = {"open_kind": 0, "open_since_ns": 0, "counted": 0}
    store.seen(seen(60_000, use(0, 60_000), use(1, 60_000, host="node2", **unmarked)))
    assert store.ranks[1].open_s(60_000 * S) is None
    job = store.job(60_001 * S)
    assert job is not None
    assert job.doing == {
        0: Doing("forward", 1.02, PID),
        1: Doing("starting", None, PID + 1, "node2"),
    }
    assert job.doing[1].address == f"node2:{PID + 1}"


def test_the_job_has_the_ranks_that_are_stopped() -> None:
    store = RankStore(PID)
    store.seen(seen(10, use(0, 10), use(1, 10, heartbeat_ns=6 * S, stopped=True)))
    job = store.job(10 * S)
    assert job is not None
    assert job.stopped == (1,)


def test_a_rank_that_was_started_anew_has_no_past() -> None:
    store = RankStore(PID)
    for at_s in range(1, 5):
        store.seen(seen(at_s, use(1, at_s)))
    store.seen(seen(5, use(1, 5, pid=99, wall_ns=2 * S)))
    assert store.ranks[0].step_ms == 200


def test_activity_is_the_gpus_or_else_what_was_no_wait() -> None:
    store = RankStore(PID)
    for at_s in range(1, 5):
        store.seen(seen(at_s, use(0, at_s, device=2, device_busy_percent=70.0), use(1, at_s)))
    gpu, host = (rank.active for rank in store.ranks)
    assert (gpu.source, gpu.title) == ("nvml", "GPU busy")
    assert [point.mean for point in gpu.levels[0]] == [70.0] * 4
    assert (host.source, host.title) == ("hook", "not waiting for data")
    assert [point.mean for point in host.levels[0]] == pytest.approx([80.0] * 4)


def test_the_session_shows_them_and_rounding_keeps_them() -> None:
    held, _ = session()
    held.ingest(Greeted(t_ns=0, hello=HELLO))
    reported = kept(seen(2, use(0, 2, device_busy_percent=71.234), use(1, 2)))
    assert reported == kept(reported)
    held.ingest(reported)
    picture = judged(held, 2 * S, 0.0)
    assert [rank.rank for rank in picture.ranks] == [0, 1]
    assert picture.world_size == 4
    assert picture.ranks[0].active.levels[0][0].mean == 71.2


def test_what_others_use_of_a_ranks_gpu_is_the_mean_of_the_readings() -> None:
    store = RankStore(PID)
    for at_s, sm in enumerate((40.0, None, 60.0), start=1):
        store.seen(seen(at_s, use(0, at_s, device_others_sm=sm), use(1, at_s)))
    job = store.job(3 * S)
    assert job is not None
    assert [one.others_sm for one in job.ranks] == [50.0, None]


def test_the_pace_of_a_job_is_that_of_its_marks_since_its_collectives_are_known() -> None:
    """The device timed them: how long single steps take on a host that runs ahead says nothing.
    What the first look found, starting up among it, does not count."""
    store = RankStore(PID)
    store.seen(seen(1, *(use(rank, 1, wall_ns=20 * S) for rank in (0, 1))))
    for at_s in range(2, 16):
        pace = {} if at_s < 13 else {"wall_ns": 2 * S}
        store.seen(seen(at_s, *(use(rank, at_s, **pace) for rank in (0, 1))))
    queued = tuple(
        StepExchange(100 + at, 3 * MS, 4, 1 << 20, MS, (0, 40 * MS), (40 * MS, 0))
        for at in range(8)
    )
    store.exchanged(CollectivesSeen(t_ns=14 * S, ranks=(0, 1), steps=queued, ddp=(), cost_ns=0))
    job = store.job(15 * S)
    assert job is not None
    assert job.exchange is not None
    assert job.exchange.paced_ns == pytest.approx((7 * S + 3 * 2 * S) / 100, rel=0.01)
    assert job.exchange.late(0).mean == pytest.approx(0.04 / 0.13, rel=0.01)


def test_where_hosts_wait_in_their_collectives_each_steps_own_length_counts() -> None:
    store = RankStore(PID)
    for at_s in range(1, 5):
        store.seen(seen(at_s, *(use(rank, at_s) for rank in (0, 1))))
    gloo = tuple(
        StepExchange(10 + at, 50 * MS, 4, 1 << 20, None, (0, 9 * MS), (9 * MS, 0))
        for at in range(8)
    )
    store.exchanged(CollectivesSeen(t_ns=4 * S, ranks=(0, 1), steps=gloo, ddp=(), cost_ns=0))
    job = store.job(4 * S)
    assert job is not None
    assert job.exchange is not None
    assert (job.exchange.paced_ns, job.exchange.step_ns) == (None, 50 * MS)


def test_what_a_ranks_gpu_does_by_its_own_counters() -> None:
    store = RankStore(PID)
    for at_s, sm in enumerate((40.0, None, 60.0), start=1):
        counted = {"device_active_percent": 90.0, "device_sm_percent": sm}
        store.seen(seen(at_s, use(0, at_s, **counted), use(1, at_s)))
    job = store.job(3 * S)
    assert job is not None
    assert [(one.active, one.sm) for one in job.ranks] == [(90.0, 50.0), (None, None)]
    assert job.ranks[0].empty == pytest.approx(0.4 / 0.82)
    assert job.idle is None, "not known of all"
