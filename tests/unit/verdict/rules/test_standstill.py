"""Which rank of a job holds the others up, where nothing moves."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.job.standing import Doing, Pending, StandingRank
from gpuwatch.tui.verdict.rules.stalled import stalled
from tests.unit.verdict.jobs import job, rank
from tests.unit.verdict.windows import even, open_step, window


def among(
    pending: Pending | None,
    ended: tuple[int, ...] = (),
    age_s: float = 41.0,
    doing: str = "other",
    phase: str = "backward",
    late_s: float | None = 41.0,
    stopped: tuple[int, ...] = (),
) -> Finding | None:
    """Rank 0 of two, whose backward has not ended for a while; `doing`: what rank 1 does, for
    `late_s`."""
    each = {0: Doing(phase, age_s, 700), 1: Doing(doing, late_s, 701)}
    run_of = replace(
        job(rank(0, target=True), rank(1), exchange=None),
        pending=pending,
        ended=ended,
        stopped=stopped,
        doing={one: does for one, does in each.items() if one not in ended},
    )
    steps = even(60, data_ms=1, forward_ms=3, backward_ms=5)
    return stalled(window(steps, open_step=open_step(phase, age_s), job=run_of))


def stuck_among(pending: Pending | None, ended: tuple[int, ...] = ()) -> Finding:
    found = among(pending, ended)
    assert found is not None
    assert (found.kind, found.sub) == ("stalled", "ranks")
    return found


LATE = Pending(431, "all_reduce", 1 << 20, inside=(0,), outside=(1,))


def test_the_rank_that_is_not_in_the_collective_is_named() -> None:
    found = stuck_among(LATE)
    assert found.headline == (
        "no progress for 41 s: rank 1 is not in all_reduce 431 of 1.0 MiB, but in other for 41 s"
    )
    assert [one.text for one in found.evidence[:3]] == [
        "in it: rank 0; not: rank 1",
        "rank 1: other for 41 s",
        "rank 0: backward for 41 s",
    ]
    assert "attach 701" in found.advice[0]


def test_each_ranks_line_is_given_that_of_the_late_one_first() -> None:
    ways = (
        StandingRank(0, ("main (train.py:9)", "all_reduce (distributed.py:2)"), name="all_reduce"),
        StandingRank(1, ("main (train.py:7)", "fetch (data.py:30)")),
    )
    found = stuck_among(replace(LATE, ranks=ways))
    assert found.headline.endswith("but in other for 41 s at fetch (data.py:30)")
    assert [one.text for one in found.evidence[1:3]] == [
        "rank 1: other for 41 s, fetch (data.py:30) ← main (train.py:7)",
        "rank 0: backward for 41 s, all_reduce (distributed.py:2) ← main (train.py:9)",
    ]


def test_a_rank_that_never_marked_is_named_with_its_line_and_pid() -> None:
    """A logger or a parameter server that only takes part in collectives."""
    way = ("main (train.py:30)", "serve (train.py:14)")
    pending = replace(LATE, ranks=(StandingRank(1, way),))
    found = among(pending, doing="starting", late_s=None)
    assert found is not None
    assert found.headline == (
        "no progress for 41 s: rank 1 is not in all_reduce 431 of 1.0 MiB, at serve (train.py:14)"
    )
    assert found.evidence[1].text == (
        "rank 1: no mark yet, serve (train.py:14) ← main (train.py:30)"
    )
    assert "attach 701" in found.advice[0]


def test_a_rank_whose_lock_is_held_answers_nothing() -> None:
    silent = StandingRank(1, ("main (train.py:7)",), silent=True)
    found = stuck_among(replace(LATE, ranks=(StandingRank(0), silent)))
    assert found.headline == (
        "no progress for 41 s: rank 1 is not in all_reduce 431 of 1.0 MiB, and answers nothing at "
        "main (train.py:7): its Python lock is held"
    )
    assert (found.evidence[1].source, found.evidence[2].source) == ("py-spy", "hook")
    assert "Python lock" in found.advice[1]


@pytest.mark.parametrize("outside", [(), (1,)])
def test_a_rank_that_the_kernel_holds_is_stopped_wherever_it_is(outside: tuple[int, ...]) -> None:
    """SIGSTOP, Ctrl-Z, a debugger, a scheduler: it was "its Python lock is held"."""
    silent = StandingRank(1, ("main (train.py:7)",), silent=True)
    pending = Pending(431, "all_reduce", 1 << 20, (0,), outside, (StandingRank(0), silent))
    found = among(pending, stopped=(1,))
    assert found is not None
    assert found.headline == "no progress for 41 s: rank 1 is stopped, and the others wait"
    assert [one.text for one in found.evidence[:2]] == [
        "the kernel lists rank 1 in state T",
        "in it: rank 0",
    ]
    assert "kill -CONT 701" in found.advice[0]
    assert not any("lock" in line for line in found.advice)


def test_ranks_in_different_collectives_disagree() -> None:
    each = (
        StandingRank(0, name="all_reduce", bytes=12),
        StandingRank(1, name="all_reduce", bytes=4 << 20),
    )
    found = stuck_among(Pending(431, "all_reduce", 12, inside=(0, 1), outside=(), ranks=each))
    assert found.headline == (
        "no progress for 41 s: ranks are in different collectives: rank 0 in all_reduce 431 of "
        "12 B, rank 1 in all_reduce 431 of 4.0 MiB"
    )
    assert "same order" in found.advice[0]


def test_ranks_that_wait_for_each_other_in_two_groups_are_both_named() -> None:
    """It was the one that is not in the first of them alone, "but in forward"."""
    each = (
        StandingRank(0, name="all_reduce", bytes=12, group="0", number=431),
        StandingRank(1, name="all_gather", bytes=8, group="1", number=7),
    )
    found = stuck_among(replace(LATE, ranks=each))
    assert found.headline == (
        "no progress for 41 s: ranks wait for each other: rank 0 in all_reduce 431 of group 0, "
        "rank 1 in all_gather 7 of group 1"
    )
    assert "same order" in found.advice[0]
    assert among(replace(LATE, ranks=each), age_s=7.0) is not None


STAYS = replace(LATE, ranks=(StandingRank(1, ("main (train.py:7)",), stays=True),))


def test_a_hang_that_counters_and_stacks_explain_is_named_within_ten_seconds() -> None:
    assert among(None, age_s=7.0) is None
    assert among(STAYS, age_s=7.0) is not None
    assert among(STAYS, age_s=5.9) is None


def test_a_late_rank_that_is_at_work_has_as_long_as_any_phase() -> None:
    """It evaluates in a loop of its own, say: its stack is another each time."""
    moves = replace(LATE, ranks=(StandingRank(1, ("main (train.py:7)",)),))
    assert among(moves, age_s=7.0) is None
    assert among(moves, age_s=11.0) is not None
    elsewhere = Pending(431, "all_reduce", 12, inside=(0, 1), outside=())
    assert among(elsewhere, age_s=7.0) is None, "a rank on another host may be at work"


def test_a_rank_that_saves_for_long_keeps_the_others_waiting_and_hangs_none() -> None:
    for pending in (LATE, STAYS):
        assert among(pending, age_s=41.0, doing="checkpoint") is None
        assert among(pending, age_s=301.0, doing="checkpoint") is not None


def test_a_death_in_the_middle_of_a_step_is_named_soon_and_an_end_in_order_is_not() -> None:
    assert among(None, ended=(1,), age_s=4.0) is not None
    assert among(None, ended=(1,), age_s=4.0, phase="other") is None
    assert among(None, ended=(1,), age_s=7.0, phase="other") is None


def test_a_rank_in_a_collective_of_one_that_ended_waits_in_whatever_phase_it_is() -> None:
    """Two H200s: DDP waits before its forward, which is in no phase yet: named after 10.9 s."""
    inside = Pending(805, "all_reduce", 4 << 20, inside=(0,), outside=())
    assert among(inside, ended=(1,), age_s=7.0, phase="other") is not None
    assert among(inside, ended=(1,), age_s=5.0, phase="other") is None
    assert among(inside, age_s=7.0, phase="other") is None, "ranks elsewhere may be late"


def test_where_all_ranks_here_are_in_it_the_cause_lies_elsewhere() -> None:
    found = stuck_among(Pending(431, "", None, inside=(0, 1), outside=()))
    assert found.headline == "no progress for 41 s: all ranks here are in collective 431"
    assert "other hosts" in found.advice[0]


def test_a_rank_that_has_ended_is_named() -> None:
    found = stuck_among(None, ended=(1,))
    assert found.headline == "no progress for 41 s: rank 1 ended, and the others wait"
    assert "rank 0: backward" in found.evidence[0].text
