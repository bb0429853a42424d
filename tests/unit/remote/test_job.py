"""A job over several hosts: its ranks on one clock, its steps matched, the late one found."""

import zlib
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from gpuwatch.tui.model.observations import CollectivesSeen, PendingSeen, RanksSeen
from gpuwatch.tui.remote.frames import LinkError
from gpuwatch.tui.remote.job import STANDING_NS, JobMerge
from gpuwatch.tui.remote.node import (
    MOST_WAITING,
    NodeReports,
    collectives_of,
    packed,
    rows_of,
    unpacked,
)
from gpuwatch.tui.session.ranks import RankStore
from gpuwatch.tui.verdict.job.late import LateRank, late_rank
from gpuwatch.tui.verdict.job.matching import Bounds, Collective
from gpuwatch.tui.verdict.job.standing import Pending, StandingRank
from gpuwatch.tui.verdict.rules.straggler import late_finding
from tests.unit.remote.jobs import report, use
from tests.unit.session.making import MS, S

AHEAD = 7_000 * S
"""Of the second host's clock."""


def judged(
    late: frozenset[int],
    per_host: int = 2,
    hosts: int = 2,
    seconds: int = 12,
    timed: bool = True,
    error_ns: int = 0,
    bound_ns: int = 0,
) -> tuple[RankStore, LateRank | None]:
    """After so many seconds, with the second clock laid on the first but for an error, which its
    link bounds."""
    merge, store = JobMerge("node0"), RankStore(1_000)
    world = per_host * hosts
    for second in range(1, seconds):
        for host in range(hosts):
            ranks = range(host * per_host, (host + 1) * per_host)
            ahead_ns = AHEAD if host else 0
            made = report(second, ranks, world, late, ahead_ns=ahead_ns, timed=timed)
            shift_ns = error_ns - ahead_ns if host else 0
            merge.add(f"node{host}", unpacked(packed(made)), shift_ns, bound_ns if host else 0)
        for seen in merge.take(second * S, {}):
            if isinstance(seen, RanksSeen):
                store.seen(seen)
            elif isinstance(seen, CollectivesSeen):
                store.exchanged(seen)
    job = store.job(seconds * S)
    assert job is not None
    return store, late_rank(job)


@pytest.mark.parametrize("timed", [True, False])
def test_a_late_rank_of_another_host_is_named_with_its_host(timed: bool) -> None:
    store, late = judged(frozenset({3}), timed=timed)
    assert late is not None
    assert (late.rank.rank, late.rank.host, late.by, late.node) == (3, "node1", "data", None)
    assert late.share.mean == pytest.approx(0.4, rel=0.1)
    job = store.job(12 * S)
    assert job is not None
    finding = late_finding(job, late)
    assert finding.headline.startswith("rank 3 (node1) waits for its loader: the other 3 wait")
    assert "gpuwatch attach node1:1003" in finding.advice[0]


@pytest.mark.parametrize("timed", [True, False])
def test_a_host_of_which_all_ranks_are_late_is_named(timed: bool) -> None:
    store, late = judged(frozenset({2, 3}), timed=timed)
    assert late is not None
    assert late.node == ("node1", (2, 3))
    job = store.job(12 * S)
    assert job is not None
    assert late_finding(job, late).headline.startswith(
        "node node1 waits for its loader: the other 2 wait"
    )


def test_the_hosts_clocks_do_not_matter_where_devices_time_the_collectives() -> None:
    _, late = judged(frozenset({3}), error_ns=9 * MS)
    assert late is not None
    assert late.rank.rank == 3
    assert late.share.mean == pytest.approx(0.4, rel=0.1)


def test_even_ranks_are_not_accused() -> None:
    _, late = judged(frozenset())
    assert late is None


def test_steps_are_counted_once_though_a_host_reports_late() -> None:
    merge = JobMerge("node0")
    merge.add("node1", report(1, range(1, 2), 2), 0)
    for second in (1, 2, 3):
        merge.add("node0", report(second, range(0, 1), 2), 0)
        (seen,) = (one for one in merge.take(second * S, {}) if isinstance(one, RanksSeen))
        assert [one.counted for one in seen.ranks] == [10, 10 if second == 1 else 0]


def test_what_a_host_reports_twice_before_it_is_looked_at_is_added_up() -> None:
    """A link that catches up delivers several at once; the second holds nothing of a checkpoint."""
    merge = JobMerge("node0")
    saved = msgspec.structs.replace(use(1, 1), checkpoint_ns=5 * S, wall_ns=6 * S)
    made = report(1, range(1, 2), 2)
    seen = msgspec.structs.replace(made.seen, ranks=(saved,))
    merge.add("node1", msgspec.structs.replace(made, seen=seen), 0)
    for second in (2, 3):
        merge.add("node1", report(second, range(1, 2), 2), 0)
    for second in (1, 2):
        merge.add("node0", report(second, range(0, 1), 2), 0)
    (found,) = (one for one in merge.take(3 * S, {}) if isinstance(one, RanksSeen))
    zero, one = found.ranks
    assert (zero.counted, zero.steps, found.interval_ns) == (20, 20, 2 * S)
    assert (one.counted, one.steps, one.wall_ns, one.checkpoint_ns) == (30, 30, 8 * S, 5 * S)


def test_a_host_whose_link_is_lost_keeps_its_ranks_and_shows_it() -> None:
    merge, store = JobMerge("node0"), RankStore(1_000)
    merge.add("node1", report(1, range(1, 2), 2), 0)
    merge.add("node0", report(1, range(0, 1), 2), 0)
    (seen,) = (one for one in merge.take(S, {"node1": True}) if isinstance(one, RanksSeen))
    store.seen(seen)
    assert [(one.rank, one.state) for one in store.ranks] == [(0, "live"), (1, "no link")]
    assert [one.is_target for one in store.ranks] == [True, False]


def test_the_same_pid_on_another_host_is_not_the_target() -> None:
    merge, store = JobMerge("node0"), RankStore(1_001)
    merge.add("node1", report(1, range(1, 2), 2), 0)
    merge.add("node0", report(1, range(0, 1), 2), 0)
    (seen,) = (one for one in merge.take(S, {}) if isinstance(one, RanksSeen))
    store.seen(seen)
    assert not any(one.is_target for one in store.ranks)


def test_who_is_not_in_the_collective_that_stands_is_on_any_host() -> None:
    merge = JobMerge("node0")
    for host in (0, 1):
        merge.add(f"node{host}", report(1, range(2 * host, 2 * host + 2), 4), 0)
    merge.stands("node0", PendingSeen(t_ns=S, number=61, name="all_reduce", inside=(0, 1)))
    merge.stands("node1", PendingSeen(t_ns=S, number=61, name="all_reduce", inside=(2,)))
    (seen,) = (one for one in merge.take(S, {}) if isinstance(one, PendingSeen))
    assert (seen.inside, seen.outside) == ((0, 1, 2), (3,))
    merge.stands("node0", PendingSeen(t_ns=S, number=-1))
    merge.stands("node1", PendingSeen(t_ns=S, number=-1))
    merge.add("node0", report(2, range(0, 2), 4), 0)
    (after,) = (one for one in merge.take(2 * S, {}) if isinstance(one, PendingSeen))
    assert after.number == -1


def standing(merge: JobMerge, at_s: int, lost: dict[str, bool] | None = None) -> PendingSeen:
    """What stands in all of the job by then."""
    merge.add("node0", report(at_s, range(0, 2), 4), 0)
    (seen,) = (one for one in merge.take(at_s * S, lost or {}) if isinstance(one, PendingSeen))
    return seen


def two_nodes() -> JobMerge:
    merge = JobMerge("node0")
    for host in (0, 1):
        merge.add(f"node{host}", report(1, range(2 * host, 2 * host + 2), 4), 0)
    return merge


def test_ranks_of_another_group_are_not_waited_for() -> None:
    """Tensor-parallel groups within the nodes, of which one has ended its collective 7."""
    merge = two_nodes()
    first = PendingSeen(t_ns=S, number=5, inside=(0,), outside=(1,), group="1", members=(0, 1))
    merge.stands("node0", first)
    second = PendingSeen(t_ns=S, number=7, inside=(2, 3), group="1", members=(2, 3))
    merge.stands("node1", second)
    found = standing(merge, 1)
    assert (found.number, found.inside, found.outside) == (5, (0,), (1,))
    merge.stands("node0", msgspec.structs.replace(first, members=()))
    merge.stands("node1", msgspec.structs.replace(second, members=(), group="2"))
    assert standing(merge, 2).outside == (1,), "gloo does not tell a group's ranks"


def test_where_the_missing_rank_is_comes_from_its_own_host() -> None:
    """Nobody is inside there: its host reports the places alone."""
    merge = two_nodes()
    waits = tuple(StandingRank(rank, name="all_reduce", stays=True) for rank in (0, 1))
    merge.stands("node0", PendingSeen(t_ns=S, number=5, inside=(0, 1), ranks=waits))
    sleeps = tuple(StandingRank(rank, ("sleep (train.py:9)",), stays=True) for rank in (2, 3))
    merge.stands("node1", PendingSeen(t_ns=S, number=-1, ranks=sleeps))
    found = standing(merge, 1)
    assert found.outside == (2, 3)
    assert Pending(5, "", None, found.inside, found.outside, found.ranks).is_sure


def test_the_rank_that_is_in_no_collective_is_waited_for_on_any_host() -> None:
    """Rank 3 computes for ever: rank 2 waits for it, and ranks 0 and 1 for rank 2."""
    merge = two_nodes()
    waits = (StandingRank(0, group="1", number=5), StandingRank(1, group="1", number=5))
    across = PendingSeen(t_ns=S, number=5, inside=(0, 1), group="1", members=(0, 1, 2), ranks=waits)
    merge.stands("node0", across)
    late = (StandingRank(2, group="2", number=7), StandingRank(3))
    merge.stands(
        "node1",
        PendingSeen(
            t_ns=S, number=7, inside=(2,), outside=(3,), group="2", members=(2, 3), ranks=late
        ),
    )
    found = standing(merge, 1)
    assert (found.group, found.inside, found.outside) == ("2", (2,), (3,))


def test_what_a_lost_host_reported_stands_no_more() -> None:
    merge = two_nodes()
    for host, inside in (("node0", (0, 1)), ("node1", (2,))):
        merge.stands(host, PendingSeen(t_ns=S, number=5, inside=inside))
    assert standing(merge, 1).outside == (3,)
    merge.stands("node0", PendingSeen(t_ns=2 * S, number=-1))
    assert standing(merge, 2, lost={"node1": True}).number == -1
    merge.stands("node1", PendingSeen(t_ns=3 * S, number=6, inside=(2,)))
    assert standing(merge, 3).inside == (2,)
    assert standing(merge, 3 + STANDING_NS // S).number == -1, "an agent reports anew till it ends"


def test_collectives_come_through_to_the_microsecond() -> None:
    made = report(3, range(0, 1), 2, ahead_ns=AHEAD)
    (rows,) = unpacked(packed(made)).rows
    found = collectives_of(rows, -AHEAD)
    assert rows_of(0, [one for one in found]).number == rows.number
    assert found[1].created_ns == 20 * STEP + 60 * MS
    assert found[1].duration_ns == MS


STEP = 100 * MS


def test_a_report_that_no_agent_makes_is_refused() -> None:
    good = report(1, range(0, 1), 2)
    (rows,) = good.rows
    short = msgspec.structs.replace(rows, number=rows.number[:-1])
    other = msgspec.structs.replace(rows, group=[9] * len(rows.group))
    made = [packed(msgspec.structs.replace(good, rows=[one])) for one in (short, other)]
    many = packed(msgspec.structs.replace(good, rows=[rows] * 300))
    stray = [packed(report(1, ranks, 2)) for ranks in (range(1, 3), range(-1, 1))]
    bomb = zlib.compress(bytes(100_000_000))
    for body in (b"", b"x" * 100, *made, *stray, many, bomb):
        with pytest.raises(LinkError):
            unpacked(body)


def test_ranks_that_a_host_has_no_more_are_forgotten() -> None:
    merge, store = JobMerge("node0"), RankStore(1_000)
    for second in range(1, 20):
        first = 4 * second
        merge.add("node0", report(second, range(first, first + 4), 1_000), 0)
        for seen in merge.take(second * S, {}):
            if isinstance(seen, RanksSeen):
                store.seen(seen)
    assert merge.ranks == len(merge._rows) == 4
    assert [one.rank for one in store.ranks] == [76, 77, 78, 79]
    assert set(store._readings) == {rank for rank, _ in store._active} == {76, 77, 78, 79}


def test_a_rank_that_has_moved_to_another_host_stays() -> None:
    merge = JobMerge("node0")
    merge.add("node0", report(1, range(0, 2), 2), 0)
    merge.add("node1", report(1, range(1, 2), 2), 0)
    merge.add("node0", report(2, range(0, 1), 2), 0)
    (seen,) = (one for one in merge.take(2 * S, {}) if isinstance(one, RanksSeen))
    assert [(one.rank, one.host) for one in seen.ranks] == [(0, ""), (1, "node1")]


def test_a_link_that_takes_no_reports_costs_bounded_memory() -> None:
    reports = NodeReports()
    for second in range(1, 100):
        reports.seen(report(second, range(0, 8), 8).seen)
    taken = []
    while (one := reports.take()) is not None:
        taken.append(one)
    assert len(taken) == MOST_WAITING
    assert taken[-1].t_ns == 99 * S


BEFORE = Collective("0", 0, "nccl:all_gather", 1 << 20, MS, 2 * MS)
GATHERED = Collective("0", 1, "nccl:all_gather", 1 << 20, 20 * MS, 5 * MS)
SCATTERED = Collective("1", 1, "nccl:reduce_scatter", 1 << 20, 10 * MS, 30 * MS)
"""Of another group: it is issued before the first and ends after it."""
RUNS = replace(SCATTERED, duration_ns=None, done=False)


class Reading:
    """Two hosts with a rank each, whose agents read their collectives, and what is made of that."""

    def __init__(self) -> None:
        self._agents = [NodeReports(), NodeReports()]
        self.sent: list[list[Collective]] = []
        self._merge = JobMerge("node0")

    def look(
        self, second: int, *entries: Sequence[Collective], has_ended: bool = True
    ) -> list[CollectivesSeen]:
        """At these of each rank, in a step that began after the first of them."""
        steps = (Bounds(1, 5 * MS, 100 * MS),) if has_ended else ()
        for rank, (agent, seen) in enumerate(zip(self._agents, entries, strict=True)):
            agent.exchanged({rank: tuple(seen)}, steps)
            ranks = (use(rank, second),)
            agent.seen(RanksSeen(t_ns=second * S, world_size=2, interval_ns=S, ranks=ranks))
            made = agent.take()
            assert made is not None
            self.sent += [collectives_of(rows, 0) for rows in made.rows]
            self._merge.add(f"node{rank}", unpacked(packed(made)), 0)
        found = self._merge.take(second * S, {})
        return [one for one in found if isinstance(one, CollectivesSeen)]


WHOLE = [BEFORE, SCATTERED, GATHERED]
NOT_ALL = [BEFORE, RUNS, GATHERED]


def test_a_collective_that_ends_after_a_younger_one_is_known_once_it_has_ended() -> None:
    reading = Reading()
    assert reading.look(3, WHOLE, NOT_ALL, has_ended=False) == []
    (seen,) = reading.look(6, WHOLE, WHOLE)
    assert [(one.collectives, one.transfer_ns) for one in seen.steps] == [(2, 35 * MS)]
    assert reading.look(9, WHOLE, WHOLE) == []


def test_what_had_not_ended_is_sent_once_more_and_nothing_else() -> None:
    reading = Reading()
    for second, first in ((3, NOT_ALL), (6, NOT_ALL), (9, WHOLE), (12, WHOLE)):
        reading.look(second, first, WHOLE)
    assert reading.sent == [NOT_ALL, WHOLE, [SCATTERED]]


def test_of_a_large_job_whole_steps_are_left_out() -> None:
    made = report(1, range(0, 2), 1_024)
    entries = {one.rank: tuple(collectives_of(one, 0)) for one in made.rows}
    bounds = tuple(Bounds(number, 1_000 * a, 1_000 * b) for number, a, b in made.bounds_us)
    reports = NodeReports(every_steps=5)
    reports.exchanged(entries, bounds)
    reports.seen(made.seen)
    found = reports.take()
    assert found is not None
    assert [len(one.number) for one in found.rows] == [8, 8]
    assert [number for number, _, _ in found.bounds_us] == [5, 10]


def test_of_a_large_job_the_groups_of_all_ranks_are_sent() -> None:
    """Also those without the host's lowest rank, which alone tells which steps these are."""
    entries = {
        rank: tuple(
            Collective(group, step + 1, "nccl:all_reduce", 8, step * STEP + at_ms * MS, MS)
            for step in range(12)
            for group, at_ms in (("0", 20), (str(rank + 1), 25))
        )
        for rank in (0, 1)
    }
    bounds = tuple(Bounds(step + 1, step * STEP, (step + 1) * STEP) for step in range(12))
    reports = NodeReports(every_steps=5)
    reports.exchanged(entries, bounds)
    reports.seen(report(1, range(0, 2), 1_024).seen)
    found = reports.take()
    assert found is not None
    sent = [[(one.group, one.number) for one in collectives_of(rows, 0)] for rows in found.rows]
    assert sent == [[("0", 5), (group, 5), ("0", 10), (group, 10)] for group in ("1", "2")]
