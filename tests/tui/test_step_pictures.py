"""The histogram, the columns of the last steps, and the phase table's changes."""

import random
from dataclasses import replace

from gpuwatch.tui.model.snapshot import Event, StepStats
from gpuwatch.tui.session.steps import spreads_of
from gpuwatch.tui.session.window_builder import step_stats
from gpuwatch.tui.widgets.charts.small import histogram_rows
from gpuwatch.tui.widgets.steps.phase_table import phase_change, step_change
from gpuwatch.tui.widgets.steps.step_times import bars_of, longest_words, marks_of, top_of
from gpuwatch.tui.widgets.text import length, text_of
from tests.tui.fake_run import MS
from tests.unit.session.making import step, steps


def test_a_histogram_shows_where_the_steps_lie() -> None:
    rows = [text_of(one).rstrip() for one in histogram_rows([10.0] * 30 + [20.0] * 15, 26, 4)]
    assert rows == [
        "  30┤██",
        "    ┤██                ██",
        "    └────────────────────",
        "     10.0 ms      20.0 ms",
    ]


def test_a_few_long_steps_are_counted_and_do_not_squeeze_the_others() -> None:
    rows = histogram_rows([10.0 + i % 3 for i in range(40)] + [4_000.0, 5_000.0], 60, 6)
    assert text_of(rows[-1]).split() == ["10.0", "ms", "2", "longer", "12.0", "ms"]
    assert all(length(one) <= 60 for one in rows)


def test_a_single_short_step_is_counted_where_it_would_squeeze_the_others() -> None:
    rows = histogram_rows([4.0] + [100.0 + i % 9 for i in range(150)], 60, 6)
    assert text_of(rows[-1]).split() == ["100", "ms", "1", "shorter", "108", "ms"]
    rows = histogram_rows([95.0] + [100.0 + i % 9 for i in range(150)], 60, 6)
    assert text_of(rows[-1]).split() == ["95.0", "ms", "108", "ms"]


def test_too_few_steps_are_no_histogram() -> None:
    assert histogram_rows([10.0] * 19, 60, 6) == []


def test_a_column_is_work_below_and_waiting_above() -> None:
    made = [step(1, 0, data_ms=50, forward_ms=50), step(2, 100, forward_ms=100)]
    assert bars_of(made, 2, 100.0) == ["░█", "██"]


def test_one_checkpoint_does_not_make_the_other_steps_flat() -> None:
    assert top_of([10.0] * 9 + [4_000.0]) == 30.0
    assert top_of([10.0] * 9 + [12.0]) == 12.0


def test_what_goes_on_beyond_the_scale_has_a_mark_at_its_top() -> None:
    made = [step(1, 0, forward_ms=100), step(2, 100, forward_ms=300)]
    assert bars_of(made, 2, 100.0) == ["█↑", "██"]
    assert longest_words([100.0, 300.0], 100.0) == "↑ longest 300 ms"
    assert longest_words([100.0, 90.0], 100.0) == "longest 100 ms"


def test_marks_are_what_steps_had_in_them_and_events_that_explain_their_times() -> None:
    made = steps(5, 10, data_ms=1, forward_ms=9)
    made[2] = step(12, 20, forward_ms=9, checkpoint_ms=40)
    events = (
        Event(0, 11, "step time +38% (was 7 ms)", "pace"),
        Event(0, 12, "verdict: input (was healthy)", "verdict"),
        Event(0, 13, "step time -20%", "pace", better=True),
        Event(0, 99, "step time +10%", "pace"),
    )
    marks = marks_of(made, events)
    assert [(mark.at, mark.glyph, mark.text) for mark in marks] == [
        (1, "▲", "step time +38% (was 7 ms)"),
        (2, "╳", "checkpoint 40.0 ms"),
        (3, "▼", "step time -20%"),
    ]


def _stats(backward_ms: float, jitter_ms: float, seed: int = 0) -> StepStats:
    made, chance = [], random.Random(seed)
    at_ms = 0.0
    for i in range(100):
        longer = chance.uniform(-jitter_ms, jitter_ms)
        made.append(step(i + 1, at_ms, forward_ms=30, backward_ms=backward_ms + longer))
        at_ms = made[-1].end_ns / MS
    stats = step_stats(made, 100, spreads_of(made))
    assert stats is not None
    return stats


def test_a_change_is_reported_where_it_exceeds_the_noise() -> None:
    before = _stats(60.0, jitter_ms=1.0)
    longer = _stats(69.0, jitter_ms=1.0)
    change = phase_change(before, longer, "backward")
    assert change is not None
    assert change.text == "▲ +15%"
    assert phase_change(before, longer, "forward") is None
    whole = step_change(before, longer)
    assert whole is not None
    assert whole.text == "▲ +10%"
    # The same difference, where steps differ by more than that from one to the next.
    assert phase_change(_stats(60.0, 40.0), _stats(69.0, 40.0, seed=1), "backward") is None


def test_steps_that_take_after_the_one_before_hardly_show_a_change_by_chance() -> None:
    """Of 200 pairs of stretches of one process 32 showed that its steps had changed."""
    shown = 0
    for seed in range(40):
        chance, slow = random.Random(seed), 0.0
        made = []
        for i in range(1, 401):
            slow = 0.8 * slow + chance.gauss(0, 3)
            made.append(step(i, 200.0 * i, forward_ms=100 + slow))
        before, now = (
            step_stats(part, len(part), spreads_of(part)) for part in (made[:200], made[200:])
        )
        assert before is not None
        assert now is not None
        shown += step_change(before, now) is not None
    assert shown <= 1


def test_a_phase_that_was_not_there_is_new() -> None:
    before = _stats(60.0, 1.0)
    made = [
        step(i + 1, 100.0 * i, forward_ms=30, backward_ms=60, checkpoint_ms=10) for i in range(50)
    ]
    now = step_stats(made, 50, spreads_of(made))
    assert now is not None
    change = phase_change(before, now, "checkpoint")
    assert change is not None
    assert change.text == "▲ new"


def test_without_the_spread_nobody_can_know() -> None:
    before = _stats(60.0, 1.0)
    bare = replace(
        before, error_ms=None, phases=tuple(replace(one, spread=None) for one in before.phases)
    )
    assert phase_change(bare, _stats(90.0, 1.0), "backward") is None
    assert step_change(bare, _stats(90.0, 1.0)) is None
