"""A profile of very many operators: bounded before it takes memory."""

import sys
from typing import Any

import pytest

from gpuwatch.probe.deep import profiler as module
from gpuwatch.probe.deep.profiler import MOST_OPERATORS, MOST_WITHOUT_SHAPES, TOO_MANY
from gpuwatch.probe.wire import marks
from tests.unit.probe.profiled import MS, Run


def test_no_more_steps_than_operators_can_be_recorded_of(run: Run) -> None:
    run.has_device = False
    run.operators = 10_000 * 3
    run.ask(steps=50)
    for _ in range(80):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    times = answered[1]["times"]
    assert len(times["ends_ns"]) - 2 == MOST_OPERATORS // 10_000 - 1
    assert run.begun[-1]["record_shapes"]


def test_a_wait_for_a_core_in_a_sample_makes_no_more_steps_of_it(run: Run) -> None:
    """Twice as many operators were recorded as can be kept: the sample ended with the wait."""
    run.has_device = False
    run.operators = 10_000 * 3
    run.ask(steps=50)
    while len(run.begun) < 1:
        run.step()
    run.step()
    run.step()
    run.ns += 40 * MS
    for _ in range(80):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert len(answered[1]["times"]["ends_ns"]) - 2 == MOST_OPERATORS // 10_000 - 1


def test_many_operators_are_recorded_without_their_shapes(run: Run) -> None:
    run.operators = MOST_OPERATORS * 3
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["operators"] is not None
    assert [one["record_shapes"] for one in run.begun] == [False, False, False]


def asked_with_a_sample_that_ends_midway(run: Run) -> None:
    """Ask for a window whose sample ends in the middle of a step, and go on to what comes after."""
    run.ask()
    while len(run.begun) < 1:
        run.step()
    run.ns += 110 * MS
    run.recorder.mark(marks.FETCH_LEAVE)  # the sample ends in the middle of a step
    while len(run.begun) < 2:
        run.step()


def test_a_sample_in_which_no_step_ends_is_judged_by_the_steps_before_it(run: Run) -> None:
    """20,000 operators in 20 ms, as a step takes: too many for their shapes."""
    run.operators = 110_000
    asked_with_a_sample_that_ends_midway(run)
    assert [one["record_shapes"] for one in run.begun] == [False, False]


def test_too_many_operators_are_left_out_where_there_are_kernels(run: Run) -> None:
    run.operators = MOST_WITHOUT_SHAPES * 3
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    answer = answered[1]
    assert (answer["why_not"], answer["no_operators"]) == ("", TOO_MANY)
    assert answer["operators"] is None
    assert len(answer["times"]["ends_ns"]) >= 3


def test_too_many_operators_are_refused_where_there_is_nothing_else(run: Run) -> None:
    run.has_device = False
    run.operators = MOST_WITHOUT_SHAPES * 3
    run.ask()
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == TOO_MANY
    assert len(run.begun) == 1
    assert run.files() == []


def test_a_step_that_grows_as_its_operators_do_is_cut(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, long before its next mark."""
    run.has_device = False
    run.operators = MOST_WITHOUT_SHAPES
    rss = [10**9]
    monkeypatch.setattr(module, "resident_bytes", lambda: (rss[0], 0))
    asked_with_a_sample_that_ends_midway(run)
    recording = run.window._recording
    assert recording is not None
    run.ns += 50 * MS
    cut: list[int] = []
    monkeypatch.setattr(module, "overdue_off", cut.append)
    assert run.window.turn(run.ns) is None
    assert cut == [], "it has not grown"
    rss[0] += module.DENSE_BYTES + 1
    run.window.turn(run.ns)
    assert cut == [run.ns]
    recording.switched.off()  # as the main thread's pending call does
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == TOO_MANY


def test_a_recording_that_ends_just_now_is_not_cut_as_well(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main thread's pending call comes between any two bytecodes, also of the ending itself."""
    run.has_device = False
    run.ask()
    for _ in range(2):
        run.step()
    recording = run.window._recording
    assert recording is not None
    disable = sys.modules["torch.autograd.profiler"]._disable_profiler

    def cut_meanwhile() -> Any:
        recording.switched.off()
        return disable()

    monkeypatch.setattr(sys.modules["torch.autograd.profiler"], "_disable_profiler", cut_meanwhile)
    for _ in range(20):
        run.step()
    answered = run.window.turn(run.ns)
    assert answered is not None
    assert answered[1]["why_not"] == ""


def test_kernels_alone_are_not_cut_as_operators_are(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.operators = MOST_OPERATORS
    monkeypatch.setattr(module, "resident_bytes", lambda: (run.ns, 0))
    run.ask()
    while len(run.begun) < 3:
        run.step()
    cut: list[int] = []
    monkeypatch.setattr(module, "overdue_off", cut.append)
    run.ns += 500 * MS
    assert run.window.turn(run.ns) is None
    assert cut == []
