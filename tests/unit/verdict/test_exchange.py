"""Collectives of all ranks, matched: transfer, waiting, and who came late."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.job.exchange import Fabric, StepExchange, exchanges, fabric_of
from gpuwatch.tui.verdict.job.matching import Bounds, Collective
from tests.unit.verdict.windows import MS

PER_STEP = 8
STEP_NS = 40 * MS


def collective(
    number: int, created_ns: int, duration_ms: float | None, backend: str = "nccl"
) -> Collective:
    ns = None if duration_ms is None else round(duration_ms * MS)
    return Collective("0", number, f"{backend}:all_reduce", 1024, created_ns, ns)


def run(
    durations_ms: Sequence[Callable[[int], float | None]],
    steps: int = 40,
    issued_late_ms: Sequence[float] = (0.0, 0.0),
    backend: str = "nccl",
) -> tuple[StepExchange, ...]:
    """Of two ranks: how long the nth collective takes on each, and how late each issues it."""
    of_ranks = {
        rank: [
            collective(
                n,
                n // PER_STEP * STEP_NS + n % PER_STEP * MS + round(issued_late_ms[rank] * MS) + MS,
                duration(n),
                backend,
            )
            for n in range(steps * PER_STEP)
        ]
        for rank, duration in enumerate(durations_ms)
    }
    return exchanges(of_ranks, [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(steps)])


MEASURED = [
    ("balanced GPT", 0.290, 0.286, 0.179, None),
    ("DDP, big layers, tiny batch", 1.072, 1.073, 1.066, None),
    ("FSDP2, the same", 0.597, 1.728, 0.592, 0),
    ("rank 1 sleeps 30 ms", 4.26, 0.172, 0.172, 1),
    ("rank 1 computes twice as much", 4.03, 0.191, 0.191, 1),
]
"""Of two H200s: mean collective of both ranks, mean of the shorter, and the late rank."""


@pytest.mark.parametrize(("name", "first", "second", "shorter", "late"), MEASURED)
def test_the_collectives_of_two_h200s(
    name: str, first: float, second: float, shorter: float, late: int | None
) -> None:
    """Where neither is late the means' differences go both ways from one to the next."""
    chance = random.Random(17)
    flips = [chance.random() < 0.5 for _ in range(40 * PER_STEP)]

    def of(own: float, rank: int) -> Callable[[int], float]:
        if late is not None:
            return lambda n: own
        return lambda n: shorter + 2 * (own - shorter) * (flips[n] == bool(rank))

    seen = run([of(first, 0), of(second, 1)])
    assert len(seen) > 35
    collectives = sum(one.collectives for one in seen)
    transfer_ms = sum(one.transfer_ns or 0 for one in seen) / collectives / MS
    assert transfer_ms == pytest.approx(shorter, rel=0.02)
    late_ms = [sum(one.late_ns[rank] for one in seen) / collectives / MS for rank in (0, 1)]
    if late is None:
        assert max(late_ms) < 0.75 * sum(late_ms)
    else:
        assert late_ms[late] == pytest.approx(abs(first - second), rel=0.02)
        assert late_ms[1 - late] == pytest.approx(0.0, abs=0.001)


def test_moments_of_issue_stand_in_where_the_host_waits_in_a_collective() -> None:
    """A rank that is 30 ms late to all buckets of a step is waited for once, not once a bucket."""
    untimed = [lambda n: None, lambda n: None]
    seen = run(untimed, issued_late_ms=(0.0, 30.0), backend="gloo")
    assert {one.transfer_ns for one in seen} == {None}
    assert seen[-1].waiting_ns == pytest.approx((37 * MS, 0), abs=MS)
    assert seen[-1].late_ns == pytest.approx((0, 37 * MS), abs=MS)


def test_moments_of_issue_show_nothing_of_hosts_that_only_queue() -> None:
    """Two H200s, rank 1's loader 30 ms slow: rank 0's host was 300 ms ahead, and before timing was
    on that looked like ten times the wait."""
    untimed = [lambda n: None, lambda n: None]
    assert run(untimed, issued_late_ms=(0.0, 300.0)) == ()


def test_a_groups_own_collective_behind_the_last_of_all_tells_no_lead() -> None:
    """Ranks 0 and 1 issue it when their wait for rank 2 is over."""
    of_ranks = {
        rank: [
            one
            for step in range(20)
            for one in (
                replace(
                    collective(step, step * STEP_NS + (26 if rank == 2 else 1) * MS, 1.0),
                    duration_ns=(1 if rank == 2 else 26) * MS,
                ),
                replace(collective(step, step * STEP_NS + 30 * MS, 1.0), group="1"),
            )
            if one.group == "0" or rank < 2
        ]
        for rank in range(3)
    }
    bounds = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(20)]
    seen = exchanges(of_ranks, bounds)
    assert seen[-1].ahead_ns == (25 * MS, 25 * MS, 0)


def test_how_far_each_host_is_ahead_is_kept() -> None:
    seen = run([lambda n: 0.2, lambda n: 0.2], issued_late_ms=(0.0, 3.0))
    assert seen[-1].ahead_ns == (3 * MS, 0)


def test_a_step_of_which_a_rank_lacks_collectives_is_left_out() -> None:
    both = {rank: [collective(n, n * 10 * MS, 1.0 + rank) for n in range(40)] for rank in (0, 1)}
    steps = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(10)]
    assert len(exchanges(both, steps)) == 10
    overwritten = {0: both[0], 1: both[1][9:]}
    assert [one.number for one in exchanges(overwritten, steps)] == [3, 4, 5, 6, 7, 8, 9]
    running = {0: both[0], 1: [*both[1][:-1], replace(both[1][-1], done=False)]}
    assert [one.number for one in exchanges(running, steps)] == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_what_was_not_timed_is_left_out_and_none_made_up_for_it() -> None:
    seen = run([lambda n: None if n % 20 == 3 else 2.0, lambda n: None if n % 20 == 7 else 1.0])
    assert len(seen) > 35
    assert {one.transfer_ns for one in seen} == {6 * MS, 7 * MS, 8 * MS}
    assert all(one.late_ns == (0, one.transfer_ns) for one in seen)
    assert run([lambda n: 2.0 if n % 8 == 0 else None, lambda n: 1.0]) == ()


def test_a_wait_may_be_longer_than_the_step_it_is_counted_in() -> None:
    """Rank 0 saves at the end of a step: what it comes late to is the next step's exchange."""
    seen = run([lambda n: 0.2, lambda n: 800.0 if n % (12 * PER_STEP) == 0 else 0.2])
    assert max(one.late_ns[0] for one in seen) > 700 * MS


def test_one_rank_alone_and_groups_of_one_show_nothing() -> None:
    assert exchanges({0: [collective(1, MS, 1.0)]}, [Bounds(1, 0, STEP_NS)]) == ()
    other = Collective("1", 1, "nccl:all_reduce", 8, MS, MS)
    assert exchanges({0: [collective(1, MS, 1.0)], 1: [other]}, [Bounds(1, 0, STEP_NS)]) == ()


def test_three_ranks_wait_for_the_last_and_lose_what_the_next_would_not_cost() -> None:
    of_ranks = {
        rank: [collective(n, n * 10 * MS, ms) for n in range(40)]
        for rank, ms in enumerate((9.0, 1.0, 5.0))
    }
    seen = exchanges(of_ranks, [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(10)])
    assert seen[-1].transfer_ns == 4 * MS
    assert seen[-1].waiting_ns == (32 * MS, 0, 16 * MS)
    assert seen[-1].late_ns == (0, 16 * MS, 0)


def of_sizes(*rows: tuple[int, float]) -> dict[int, list[Collective]]:
    """On two ranks, of which the second waits 3 ms each time: (bytes, ms of transfer)."""
    return {
        rank: [
            replace(collective(n, n * MS, ms + 3.0 * rank), bytes=size)
            for n, (size, ms) in enumerate(rows)
        ]
        for rank in (0, 1)
    }


def test_collectives_at_their_best_rate_are_limited_by_the_links() -> None:
    found = fabric_of(of_sizes(*[(25 << 20, 0.1)] * 20))
    assert found == Fabric(20 * (25 << 20), 2 * MS, 2 * MS)


def test_what_is_slower_than_its_own_kind_would_take_less_at_best() -> None:
    """A quarter of them, or half, are as fast as the links are; the others take four times that."""
    found = fabric_of(of_sizes(*[(25 << 20, 0.1), *[(25 << 20, 0.4)] * 3] * 10))
    assert found is not None
    assert found.shortest_ns == pytest.approx(13 * MS)
    assert found.at_best_ns == pytest.approx(13 * MS), "a few fast ones set no rate"
    half = fabric_of(of_sizes(*[(25 << 20, 0.1), (25 << 20, 0.4)] * 15))
    assert half is not None
    assert half.at_best_ns == pytest.approx(3 * MS)


def test_few_collectives_set_no_rate() -> None:
    found = fabric_of(of_sizes(*[(25 << 20, 0.1)] * 2, *[(1 << 20, 0.4)] * 3))
    assert found is not None
    assert found.at_best_ns == found.shortest_ns
    untimed = {
        rank: [replace(one, duration_ns=None) for one in row]
        for rank, row in of_sizes((9, 1.0)).items()
    }
    assert fabric_of(untimed) is None


def test_a_node_is_late_by_what_the_others_wait_for_every_one_of_its_ranks() -> None:
    """Ranks 2 and 3 on the second host come 5 ms late, one of them 1 ms more."""
    hosts = {0: "a", 1: "a", 2: "b", 3: "b"}
    steps = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(10)]
    durations_ms = (7.0, 7.0, 1.0, 2.0)
    timed = {
        rank: [collective(n, n * 10 * MS, ms) for n in range(40)]
        for rank, ms in enumerate(durations_ms)
    }
    assert exchanges(timed, steps, hosts)[-1].node_late_ns == (0, 4 * 5 * MS)
    issued = {
        rank: [
            replace(
                collective(n, round((n * 10 - ms) * MS) + STEP_NS, None), name="gloo:all_reduce"
            )
            for n in range(40)
        ]
        for rank, ms in enumerate(durations_ms)
    }
    assert exchanges(issued, steps[2:], hosts)[-1].node_late_ns == (0, 4 * 5 * MS)
    alone = {**hosts, 3: "a"}
    assert exchanges(timed, steps, alone)[-1].node_late_ns == (0, 4 * MS)
    assert exchanges(timed, steps)[-1].node_late_ns == ()


def of_groups(rows: Sequence[tuple[str, float, float]], backend: str = "nccl") -> list[Collective]:
    """A rank's collectives in 20 steps: (group, ms in the step when it is issued, ms that it
    takes)."""
    return [
        Collective(
            group,
            step + 1,
            f"{backend}:all_reduce",
            1024,
            step * STEP_NS + round(at_ms * MS),
            round(ms * MS) if backend == "nccl" else None,
        )
        for step in range(20)
        for group, at_ms, ms in rows
    ]


TWENTY = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(20)]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_group_of_some_ranks_does_not_hide_the_late_one(backend: str) -> None:
    """Two of three ranks also average a metric; the third comes 20 ms late to the world's."""
    of_ranks = {rank: of_groups([("0", 5.0, 21.0), ("1", 30.0, 0.1)], backend) for rank in (0, 1)}
    of_ranks[2] = of_groups([("0", 25.0, 1.0)], backend)
    seen = exchanges(of_ranks, TWENTY)
    assert len(seen) > 17
    assert {one.late_ns for one in seen} == {(0, 0, 20 * MS)}
    assert {one.waiting_ns for one in seen} == {(20 * MS, 20 * MS, 0)}


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_who_waits_for_the_late_rank_first_is_not_late_to_its_other_group(backend: str) -> None:
    """Tensor parallel pairs (0, 1) and (2, 3), data parallel pairs (0, 2) and (1, 3). Rank 3
    computes 10 ms longer; rank 2, which waits for it, then comes as late to rank 0."""
    of_ranks = {
        0: of_groups([("1", 5.0, 0.5), ("3", 6.0, 11.0)], backend),
        1: of_groups([("1", 5.0, 0.5), ("4", 6.0, 11.0)], backend),
        2: of_groups([("2", 5.0, 10.5), ("3", 16.0, 1.0)], backend),
        3: of_groups([("2", 15.0, 0.5), ("4", 16.0, 1.0)], backend),
    }
    seen = exchanges(of_ranks, TWENTY)
    assert len(seen) > 17
    assert {one.waiting_ns for one in seen} == {(10 * MS, 10 * MS, 10 * MS, 0)}
    assert {one.late_ns for one in seen} == {(0, 0, 0, 10 * MS)}
    assert {one.collectives for one in seen} == {2}
    if backend == "nccl":
        assert {one.transfer_ns for one in seen} == {round(1.5 * MS)}


def test_the_step_of_a_group_without_the_lowest_rank_is_that_of_the_collective_behind_it() -> None:
    """Rank 2's host is three steps ahead; in step 9 it waits 30 ms for rank 3 in their group."""
    ahead = 3 * STEP_NS
    of_ranks = {
        0: of_groups([("0", 20.0, 1.0), ("1", 25.0, 1.0)]),
        1: of_groups([("0", 20.0, 1.0), ("1", 25.0, 1.0)]),
        2: of_groups([("2", 5.0, 1.0), ("0", 20.0, 1.0)]),
        3: of_groups([("2", 5.0, 1.0), ("0", 20.0, 1.0)]),
    }
    of_ranks[2] = [replace(one, created_ns=one.created_ns - ahead) for one in of_ranks[2]]
    of_ranks[2][18] = replace(of_ranks[2][18], duration_ns=31 * MS)
    seen = exchanges(of_ranks, TWENTY)
    assert {one.number for one in seen if one.waiting_ns[2]} == {9}
    assert [one.waiting_ns for one in seen if one.number == 9] == [(0, 0, 30 * MS, 0)]


def test_a_step_of_which_a_group_lacks_collectives_is_left_out() -> None:
    both = [("0", 20.0, 1.0), ("1", 25.0, 1.0)]
    of_ranks = {0: of_groups(both), 1: of_groups(both), 2: of_groups(both)}
    of_ranks[2] = [one for one in of_ranks[2] if (one.group, one.number) != ("1", 9)]
    assert {one.number for one in exchanges(of_ranks, TWENTY)} == set(range(1, 20)) - {8}


def test_ranks_that_share_no_group_are_not_compared() -> None:
    of_ranks = {rank: of_groups([(str(rank // 2), 20.0, 1.0)]) for rank in range(4)}
    assert exchanges(of_ranks, TWENTY) == ()


def test_each_group_has_the_rate_of_its_own_links() -> None:
    """Between hosts it is a tenth of that within one."""
    both = [replace(one, bytes=1 << 20) for one in of_groups([("1", 5.0, 0.1), ("2", 9.0, 1.0)])]
    inner, outer = ([one for one in both if one.group == group] for group in ("1", "2"))
    found = fabric_of({0: both, 1: inner, 2: outer})
    assert found == Fabric(40 << 20, 22 * MS, 22 * MS)


RECORDED = 2_000


@pytest.mark.parametrize("own_a_step", [0, 1, 3])
def test_a_group_that_was_made_anew_is_another(own_a_step: int) -> None:
    """Its numbers begin again. Rank 0 has a group of its own, and so fewer of the earlier ones in
    its recorder, or none: rank 1's were taken for those of its second run, 100 s late."""
    of_ranks: dict[int, list[Collective]] = {0: [], 1: []}
    steps: list[Bounds] = []
    for at in range(1_300):
        number, start_ns = at % 650 + 1, at * STEP_NS + at // 650 * 100 * STEP_NS
        steps.append(Bounds(at, start_ns, start_ns + STEP_NS))
        for rank in (0, 1):
            issued_ns = start_ns + (5 + rank) * MS
            of_ranks[rank].append(collective(number, issued_ns, None, "gloo"))
        of_ranks[0] += [
            Collective("7", own_a_step * at + one, "gloo:barrier", 0, start_ns + 20 * MS, None)
            for one in range(own_a_step)
        ]
    seen = exchanges({rank: rows[-RECORDED:] for rank, rows in of_ranks.items()}, steps)
    assert len(seen) > 450
    assert {one.late_ns for one in seen} == {(0, MS)}


def test_two_that_were_read_in_the_other_order_are_of_one_group() -> None:
    both = {rank: [collective(n, n * 10 * MS, 1.0) for n in range(1, 40)] for rank in (0, 1)}
    both[1][20:22] = both[1][21], both[1][20]
    steps = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(10)]
    assert [one.number for one in exchanges(both, steps)] == list(range(1, 10))


@pytest.mark.parametrize("small", ["9 [rank]", "7 [2, 3]"])
def test_a_small_group_beside_one_of_all_ranks_costs_no_step(small: str) -> None:
    """A group of one rank each, or of ranks 2 and 3, made the newest step "not known yet": of steps
    that fill most of what a recorder keeps none was ever known."""

    def of_rank(rank: int, steps: int) -> tuple[Collective, ...]:
        group = small.replace("rank", str(rank)) if "rank" in small else small
        rows = []
        for step in range(steps):
            for n in range(PER_STEP):
                made_ns = step * STEP_NS + n * MS + MS + rank
                rows.append(
                    Collective("0", step * PER_STEP + n, "nccl:all_gather", 64, made_ns, MS)
                )
            if "rank" in small or rank >= 2:
                behind_ns = step * STEP_NS + PER_STEP * MS + MS + rank
                rows.append(Collective(group, step, "nccl:all_reduce", 8, behind_ns, MS))
        return tuple(rows)

    rows = {rank: of_rank(rank, 6) for rank in range(4)}
    bounds = [Bounds(n, n * STEP_NS, (n + 1) * STEP_NS) for n in range(6)]
    assert exchanges(rows, bounds)[-1].number == 5
