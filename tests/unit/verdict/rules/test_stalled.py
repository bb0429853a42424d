"""Nothing moves, or only seems to."""

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Verdict
from gpuwatch.tui.verdict.rules.stalled import is_near, stalled
from gpuwatch.tui.verdict.stack_samples import WorkersAt
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
