"""Nothing moves, or only seems to."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Verdict
from gpuwatch.tui.verdict.job.standing import Doing, Pending, StandingRank
from gpuwatch.tui.verdict.rules.stalled import is_near, stalled
from gpuwatch.tui.verdict.stack_samples import WorkersAt
from tests.unit.verdict.jobs import job, rank
from tests.unit.verdict.windows import S, even, open_step, run, stacks, window


def test_a_run_that_stops_names_the_phase_and_the_frame() -> None:
    seen = window(
        even(300, data_ms=2, forward_ms=40),
        open_step=open_step("data", 12.0, frame="get (queues.py:113)"),
        stacks=stacks(workers=[(1.0, "wait (connection.py:9)", "read (stalled.py:60)")], idle=0.0),
    )
    judged = Engine().judge(seen)
    assert (judged.finding.kind, judged.finding.severity) == ("stalled", "critical")
    assert judged.finding.headline == "no progress for 12 s: data in get (queues.py:113)"
    assert "read (stalled.py:60)" in judged.finding.evidence[-1].text


def test_the_way_there_is_reported_from_the_outermost_frame() -> None:
    way = ("main (train.py:90)", "epoch (train.py:40)", "recv (client.py:12)")
    now = open_step("forward", 40.0, frame=way[-1], stack=way)
    finding = Engine().judge(window(even(300, forward_ms=40), open_step=now)).finding
    assert finding.headline == "no progress for 40 s: forward in recv (client.py:12)"
    assert finding.evidence[1].text == (
        "the main thread: main (train.py:90) → epoch (train.py:40) → recv (client.py:12)"
    )
    assert finding.evidence[1].source == "py-spy"


HELD = WorkersAt(
    (48231, 48232), ("get (files.py:30)", "read (stalled.py:66)", "answer (stalled.py:77)"), False
)
IDLE = WorkersAt((48233,), ("_worker_loop (torch/utils/data/_utils/worker.py:342)",), True)
WAY = ("train (train.py:52)", "_try_get_data (torch/utils/data/dataloader.py:1310)")


def held_up(*workers: WorkersAt, phase: str = "data") -> Finding:
    now = open_step(phase, 12.0, frame=WAY[-1], stack=WAY, workers=workers)
    rows = even(300, data_ms=2, forward_ms=40)
    before = stacks(workers=[(1.0, "decode (PIL/ImageFile.py:300)", None)], idle=0.0)
    finding = stalled(window(rows, open_step=now, stacks=before))
    assert finding is not None
    return finding


def test_a_wait_for_data_is_named_by_the_worker_that_stands() -> None:
    finding = held_up(HELD, IDLE)
    assert finding.headline == "no progress for 12 s: data, 2 workers in answer (stalled.py:77)"
    reported = [(one.text, one.source) for one in finding.evidence[1:]]
    assert reported == [
        (
            "workers 48231 and 48232: answer (stalled.py:77) ← read (stalled.py:66) ← "
            "get (files.py:30); 1 more waits for work",
            "py-spy",
        ),
        (f"the main thread: {WAY[0]} → {WAY[1]}", "py-spy"),
    ], "and not by what workers did in the minute before"
    assert finding.advice == (
        "see what holds 2 workers in answer (stalled.py:77): a lock, a disk, "
        "a server without a timeout",
    )


def test_workers_that_wait_for_work_hold_nothing_up() -> None:
    finding = held_up(IDLE)
    assert finding.headline == f"no progress for 12 s: data in {WAY[1]}"
    assert finding.evidence[1].text == (
        "its worker waits for work: none makes the batch that it waits for"
    )


def test_in_another_phase_workers_are_nobodys_business() -> None:
    assert "worker" not in str(held_up(HELD, phase="forward"))


def test_without_a_stack_the_phase_stands_alone() -> None:
    now = open_step("backward", 40.0)
    finding = Engine().judge(window(even(300, forward_ms=40), open_step=now)).finding
    assert finding.headline == "no progress for 40 s: backward"
    assert [one.source for one in finding.evidence] == ["hook"]


@pytest.mark.parametrize(
    ("phase", "age_s", "stuck"),
    [
        ("data", 9.0, False),
        ("forward", 11.0, True),
        ("compile", 600.0, False),
        ("checkpoint", 200.0, False),
        ("checkpoint", 400.0, True),
        ("loader start-up", 50.0, False),
        ("export", 50.0, False),
        ("starting", 500.0, False),
        ("training over", 5_000.0, False),
    ],
)
def test_how_long_is_too_long(phase: str, age_s: float, stuck: bool) -> None:
    seen = window(even(300, forward_ms=40), open_step=open_step(phase, age_s))
    assert (stalled(seen) is not None) == stuck


def test_a_long_evaluation_that_makes_progress_is_no_stall() -> None:
    rows = even(300, forward_ms=40)
    moving = open_step("evaluation", 0.4, step_age_s=900.0)
    assert stalled(window(rows, open_step=moving)) is None


def test_what_took_long_before_may_take_long_again() -> None:
    rows = run(300, lambda n: {"forward_ms": 40, "other_ms": 20_000 if n == 250 else 0})
    assert stalled(window(rows, open_step=open_step("other", 30.0))) is None


def test_slow_steps_are_given_ten_of_them() -> None:
    rows = even(30, forward_ms=8_000)
    assert stalled(window(rows, open_step=open_step("forward", 70.0))) is None
    assert stalled(window(rows, open_step=open_step("forward", 90.0))) is not None


def test_the_first_step_may_take_two_minutes() -> None:
    assert stalled(window([], open_step=open_step("forward", 100.0))) is None


def test_a_run_that_has_ended_is_not_stalled() -> None:
    rows = even(300, forward_ms=40)
    assert stalled(window(rows, open_step=open_step("data", 99.0), ended=True)) is None


def hung(phase: str, **end: bool) -> tuple[Engine, Verdict]:
    """A run that waits for data, hangs for a minute and is ended."""
    engine, rows = Engine(), even(300, data_ms=60, forward_ms=40)
    engine.judge(window(rows))
    for age_s in (12, 60, 69):
        given = {"ended": True, **end} if age_s == 69 else {}
        now = open_step(phase, float(age_s), frame="main (train2.py:20)")
        at_ns = rows[-1].end_ns + age_s * S
        judged = engine.judge(window(rows, now_ns=at_ns, open_step=now, **given))
    return engine, judged


def test_a_run_that_hung_and_was_killed_has_hung() -> None:
    engine, judged = hung("other", killed=True)
    assert judged.finding.kind == "stalled"
    assert (
        judged.finding.headline == "no progress for 69 s: other in main (train2.py:20), then killed"
    )
    assert engine.timeline().verdicts[-1].kind == "stalled"
    assert engine.timeline().verdicts[-1].headline.endswith(", then killed")


def test_a_run_that_leaves_in_order_after_its_loop_did_not_hang() -> None:
    assert hung("other")[1].finding.kind == "input"
    assert hung("data")[1].finding.headline.endswith("in main (train2.py:20), then it ended")


def test_a_stall_began_with_the_last_mark() -> None:
    """So that "for 69 s" stands beside "no progress for 69 s"."""
    _, judged = hung("other", killed=True)
    assert judged.since_ns == even(300, data_ms=60, forward_ms=40)[-1].end_ns


def test_the_verdict_comes_back_with_the_next_step() -> None:
    engine = Engine()
    rows = even(301, data_ms=60, forward_ms=40)
    assert engine.judge(window(rows[:300])).finding.kind == "input"
    stuck = engine.judge(window(rows[:300], open_step=open_step("data", 30.0)))
    assert stuck.finding.kind == "stalled"
    again = engine.judge(window(rows, open_step=open_step("data", 0.1)))
    assert again.finding.kind == "input"
    assert [held.kind for held in engine.summary()]


def test_it_is_near_when_half_the_time_is_over() -> None:
    rows = tuple(even(300, data_ms=2, forward_ms=40))
    near = [is_near(open_step("data", age_s), rows, ended=False) for age_s in (4.9, 5.1)]
    assert near == [False, True]
    assert not is_near(open_step("checkpoint", 100.0), rows, ended=False), "that may take minutes"


def test_where_the_rule_will_not_fire_it_is_never_near() -> None:
    rows = tuple(even(300, data_ms=2, forward_ms=40))
    assert not is_near(open_step("data", 100.0), rows, ended=True)
    assert not any(
        is_near(open_step(phase, 1e6), rows, ended=False) for phase in ("starting", "training over")
    )


def test_a_notebook_at_its_prompt_is_idle_and_not_stalled() -> None:
    found = stalled(
        window(even(30, forward_ms=40), open_step=open_step("other", 120.0, at_prompt=True))
    )
    assert found is not None
    assert (found.kind, found.sub, found.severity) == ("healthy", "idle", "info")
    assert "the notebook is idle" in found.headline


def test_a_stopped_process_is_stopped() -> None:
    """SIGSTOP, Ctrl-Z, a debugger: nothing in it is to be looked for, however long it lasts."""
    rows = even(30, data_ms=2, forward_ms=40)
    for age_s in (0.1, 120.0):
        now = open_step("data", age_s)
        judged = Engine().judge(window(rows, open_step=now, stopped=True)).finding
        assert (judged.kind, judged.sub, judged.severity) == ("stalled", "stopped", "info")
        assert judged.headline.startswith("the process is stopped")
    goes_on = Engine().judge(window(rows, open_step=open_step("data", 0.1))).finding
    assert goes_on.kind != "stalled"


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


def test_workers_of_an_evaluation_that_always_start_slowly_are_no_stall() -> None:
    """Whose workers start is not known before their first batch."""
    rows = run(
        100,
        lambda n: {
            "forward_ms": 10,
            "evaluation_ms": 100_000 if n % 30 == 0 else 0,
            "evaluation_startup_ns": 80 * S if n % 30 == 0 else 0,
        },
    )
    assert stalled(window(rows, open_step=open_step("loader start-up", 65.0))) is None
