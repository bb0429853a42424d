"""Ranks on the screen: golden text, the keys that go from one to another, and what is reported."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.errors import NoProcessError
from gpuwatch.tui.model.provider import TimeTravelProvider
from gpuwatch.tui.model.snapshot import Rank, Snapshot
from gpuwatch.tui.screens.switching import Switch
from gpuwatch.tui.widgets.gpu.devices import beside_rank
from gpuwatch.tui.widgets.gpu.ranks import short_hosts
from gpuwatch.tui.wording.gpu import alike_words, count_words, late_words, trouble_words
from tests.tui import rank_states
from tests.tui.fake_run import START, FakeRun, S, snapshot_at
from tests.tui.golden_text import assert_golden, picture_of, screen_text

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
SNAPSHOT = rank_states.eight_ranks(snapshot_at(START + 400 * S))


@pytest.mark.parametrize("size", SIZES)
def test_the_overview(size: tuple[int, int]) -> None:
    text = picture_of(size, rank_states.eight_ranks)
    assert "r3 is late" in text
    assert_golden(f"eight_ranks_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_the_gpu_view(size: tuple[int, int]) -> None:
    text = picture_of(size, rank_states.ranks_in_trouble, keys=["2"])
    assert "8 of 16 ranks" in text
    assert "r5 ended" in text
    assert_golden(f"gpu_ranks_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize("size", SIZES)
def test_ranks_are_lanes_that_end_where_they_meet(size: tuple[int, int]) -> None:
    text = picture_of(size, rank_states.met_ranks, keys=["7"])
    assert all(f"r{number} " in text for number in range(8))
    assert_golden(f"rank_lanes_{size[0]}x{size[1]}", text)


def test_of_64_ranks_those_that_differ_are_shown_at_80x24() -> None:
    text = picture_of((80, 24), partial(rank_states.met_ranks, count=64), keys=["7"])
    assert "▲ r3 " in text
    assert "63 alike" in text
    assert_golden("rank_lanes_of_64_80x24", text)


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        (("node1", "node2.lab"), ("node1", "node2.lab")),
        (("ip-10-0-12-34", "ip-10-0-12-35"), ("…10-0-12-34", "…10-0-12-35")),
        (("n001.cluster.example.com", "n002.cluster.example.com"), ("n001", "n002")),
        (("n001.cluster.example.com",), ("n001",)),
        (("worker-0001-prod", "worker-0002-prod"), ("worker-0001", "worker-0002")),
        (("gke-pool-7f9c4d-x2k1", "gke-pool-7f9c4d-p0q1"), ("…f9c4d-x2k1", "…f9c4d-p0q1")),
        (("node1.east.example", "node1.west.example"), ("node1.east", "node1.west")),
        (("192.168.100.134", "192.168.100.135"), ("…68.100.134", "…68.100.135")),
    ],
)
def test_hosts_are_told_apart_in_few_cells(hosts: tuple[str, ...], shown: tuple[str, ...]) -> None:
    assert tuple(short_hosts(hosts).values()) == shown


def test_the_table_has_the_ends_of_long_names() -> None:
    def of_a_cloud(snapshot: Snapshot) -> Snapshot:
        eight = rank_states.eight_ranks(snapshot)
        ranks = [replace(one, host=f"ip-10-0-12-{30 + one.rank // 4}") for one in eight.ranks]
        return replace(eight, ranks=tuple(ranks))

    text = picture_of((200, 60), of_a_cloud, keys=["2"])
    assert ("…10-0-12-30" in text, "…10-0-12-31" in text) == (True, True)


def test_one_process_has_no_ranks() -> None:
    assert "one process: no ranks" in picture_of((80, 24), keys=["7"])


def test_the_late_rank_is_reported() -> None:
    assert SNAPSHOT.job is not None
    assert SNAPSHOT.job.late is not None
    assert late_words(SNAPSHOT.job.late) == (
        "r3 is late: data wait 707 ms per step, others 24.8 ms"
    )


def test_ranks_of_which_none_is_late_are_alike() -> None:
    assert alike_words(SNAPSHOT.ranks[:3]) == "1.2 s per step · data wait 2% · none late"


def test_ranks_elsewhere_are_counted_and_trouble_is_named() -> None:
    ranks = rank_states.ranks_in_trouble(snapshot_at(START + 400 * S)).ranks
    assert count_words(ranks, 16) == "8 of 16 ranks"
    assert trouble_words(ranks, START + 400 * S) == ["r5 ended", "r6 silent 12 s"]


@pytest.mark.parametrize(("by", "rank"), [(+1, 4), (-1, 2)])
def test_the_rank_beside(by: int, rank: int) -> None:
    found = beside_rank(SNAPSHOT, by)
    assert found is not None
    assert found.rank == rank


def test_a_rank_that_has_ended_is_passed_over() -> None:
    ranks = (*SNAPSHOT.ranks[:4], replace(SNAPSHOT.ranks[4], state="ended"), *SNAPSHOT.ranks[5:])
    found = beside_rank(replace(SNAPSHOT, ranks=ranks), +1)
    assert found is not None
    assert found.rank == 5


class Watching:
    """The app on the fake ranks, with pictures of the others to be had."""

    def __init__(self, make: Callable[[Rank], TimeTravelProvider] | None) -> None:
        self.first = FakeRun(change=rank_states.eight_ranks)
        self.app = GpuwatchApp(self.first, switch=Switch(self.first, make))

    def pressed(self, *keys: str, until: Callable[[str], bool]) -> str:
        """The screen after these keys and the notices, as soon as it is so."""

        async def session() -> str:
            async with self.app.run_test(size=(200, 60)) as pilot:
                await self.app.begun.wait()
                await pilot.pause()
                await pilot.press(*keys)
                for _ in range(100):
                    await pilot.pause(0.02)
                    self.app.frame()
                    notices = [notice.message for notice in self.app._notifications]
                    if until(text := "\n".join([screen_text(self.app), *notices])):
                        return text
                raise AssertionError(text)

        return asyncio.run(session())


def other_rank(made: list[FakeRun], pid: int) -> FakeRun:
    """The picture of another rank, as one sees it."""

    def change(snapshot: Snapshot) -> Snapshot:
        run = rank_states.eight_ranks(snapshot)
        ranks = tuple(replace(rank, is_target=rank.pid == pid) for rank in run.ranks)
        return replace(run, pid=pid, ranks=ranks)

    made.append(FakeRun(change=change))
    return made[-1]


def test_a_key_goes_to_the_next_rank_and_lets_go_of_the_one_before() -> None:
    made: list[FakeRun] = []
    watching = Watching(lambda rank: other_rank(made, rank.pid))
    watching.pressed("greater_than_sign", until=lambda text: "pid 48313" in text)
    assert [(run.started, run.closed) for run in (watching.first, *made)] == [(1, 1), (1, 0)]


def test_enter_on_a_marked_rank_goes_there() -> None:
    made: list[FakeRun] = []
    watching = Watching(lambda rank: other_rank(made, rank.pid))
    watching.pressed(*["tab"] * 3, "up", "up", "enter", until=lambda text: "pid 48013" in text)
    assert made[0].started == 1


def test_a_rank_that_cannot_be_watched_shows_why_and_the_picture_stays() -> None:
    def make(rank: Rank) -> FakeRun:
        raise NoProcessError(f"no process {rank.pid}")

    watching = Watching(make)
    text = watching.pressed("greater_than_sign", until=lambda text: "no process 48313" in text)
    assert "pid 48213" in text
    assert watching.first.closed == 0


def test_a_recording_shows_that_it_is_of_one_rank() -> None:
    Watching(None).pressed("greater_than_sign", until=lambda text: "r4 is not in it" in text)


def of_two_hosts(shown: Rank, snapshot: Snapshot) -> Snapshot:
    """Ranks 0 to 3 on node1, 4 to 7 with the same pids on node2, as it is seen from one of them."""
    run = rank_states.eight_ranks(snapshot)
    ranks = []
    for rank in run.ranks:
        host = "node1" if rank.rank < 4 else "node2"
        is_target = rank.rank == shown.rank
        own = "node1" if shown.rank < 4 else "node2"
        pid = run.ranks[rank.rank % 4].pid
        host = "" if host == own else host
        ranks.append(replace(rank, pid=pid, host=host, is_target=is_target))
    return replace(run, pid=ranks[shown.rank].pid, ranks=tuple(ranks))


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("greater_than_sign", [4, 5, 6, 7, 0, 1, 2, 3]),
        ("less_than_sign", [2, 1, 0, 7, 6, 5, 4, 3]),
    ],
)
def test_a_key_goes_through_the_ranks_of_all_hosts(key: str, order: list[int]) -> None:
    made: list[Rank] = []

    def make(rank: Rank) -> FakeRun:
        made.append(rank)
        return FakeRun(change=partial(of_two_hosts, rank))

    first = FakeRun(change=partial(of_two_hosts, SNAPSHOT.ranks[3]))
    app = GpuwatchApp(first, switch=Switch(first, make))

    notices: set[str] = set()

    async def session() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await app.begun.wait()
            for number in order:
                await pilot.press(key)
                for _ in range(1_000):
                    await pilot.pause(0.01)
                    notices.update(notice.message for notice in app._notifications)
                    if (shown := app._shown) and shown.ranks[number].is_target:
                        break
                else:
                    raise AssertionError(f"r{number} is not shown")

    asyncio.run(session())
    assert [rank.rank for rank in made] == order
    hosts = [rank.host for rank in made]
    there, back = (4, 0) if key == "greater_than_sign" else (7, 3)
    crossed = {number: host for number, host in zip(order, hosts, strict=True) if host}
    assert crossed == {there: "node2", back: "node1"}
    assert notices == {f"r{rank} is on {host}: connecting" for rank, host in crossed.items()}
