"""The sawtooth's arithmetic, as pictures."""

from collections.abc import Iterable
from dataclasses import replace
from math import pi, sin
from random import Random

import pytest

from gpuwatch.tui.timeseries.series import NO_STEPS, Series, StepEdges
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.widgets.charts.columns import (
    ChartColumn,
    ColumnSpan,
    area_rows,
    beat_ns,
    columns_of,
    grid_for,
    stretches,
    tick_row,
    upright,
)
from gpuwatch.tui.widgets.text import Charset
from tests.tui.fake_run import MS, START, S, snapshot_at


def _flat(*values: float | None) -> list[ChartColumn | None]:
    return [None if value is None else ChartColumn(value, value) for value in values]


def _series(samples: Iterable[tuple[int, float]], interval_ns: int = 100 * MS) -> Series:
    growing = Growing("busy", "GPU busy", "%", "nvml", 0, interval_ns)
    for t_ns, value in samples:
        growing.add(t_ns, value)
    return growing.series()


def test_area_is_eighths_of_cells() -> None:
    rows = area_rows(_flat(0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100), 2)
    assert rows == [
        #    a quarter of the scale is half a cell here
        "     ▂▄▆█",
        "▁▂▄▆█████",
    ]


def test_the_peak_is_shade_above_the_mean() -> None:
    columns = [ChartColumn(25.0, 100.0), ChartColumn(25.0, 50.0), ChartColumn(25.0, 25.0)]
    assert area_rows(columns, 4) == [
        "░  ",
        "░  ",
        "░░ ",
        "███",
    ]


def test_the_next_frame_of_a_wide_terminal_draws_only_the_columns_that_are_new() -> None:
    rng, wide = Random(3), 400
    charts = [[ChartColumn(rng.uniform(0, 100), 100.0) for _ in range(wide + 1)] for _ in range(12)]
    upright.cache_clear()
    for chart in charts:
        area_rows(chart[:wide], 2)
    for chart in charts:
        area_rows(chart[1:], 2)
    assert upright.cache_info().misses == 12 * wide + 12


def test_a_measured_nothing_shows_and_what_was_not_measured_does_not() -> None:
    assert area_rows(_flat(0, None, 0), 1) == ["▁ ▁"]


def test_other_scales_and_values_beyond_them() -> None:
    assert area_rows(_flat(10, 15, 20, 99), 1, 10, 20) == ["▁▄██"]


def test_charsets_keep_every_cell() -> None:
    rows = area_rows([ChartColumn(20, 100), ChartColumn(55, 55), ChartColumn(100, 100)], 2)
    assert rows == ["░▁█", "▃██"]
    assert [Charset.ASCII.translate(row) for row in rows] == [":.#", ":##"]
    assert [Charset.CONSOLE.translate(row) for row in rows] == ["░ █", "▄██"]


def test_never_finer_than_the_samples() -> None:
    assert grid_for(10 * S, 1_000, 200 * MS, 0).column_ns == 200 * MS


@pytest.mark.parametrize(
    ("asked_ms", "step_ms", "column_ms", "whole"),
    [
        (100, 1_240, 100, 0),  # many columns a step: the teeth show
        (400, 1_240, 400, 0),
        (500, 1_240, 500, 1),  # would beat: the mean of the step that it lies in
        (1_300, 1_240, 1_300, 1),
        (2_000, 1_240, 2_000, 2),
        (4_000, 1_240, 4_000, 0),  # many steps a column: a plain mean
        (100, 90, 100, 6),  # a sample covers more than a step: the mean of several
        (100, 0, 100, 0),  # no step known
        (20, 1_240, 100, 0),  # never finer than the samples
    ],
)
def test_columns_that_would_beat_with_the_steps_show_whole_ones(
    asked_ms: int, step_ms: int, column_ms: int, whole: int
) -> None:
    grid = grid_for(asked_ms * MS * 50, 50, 100 * MS, step_ms * MS)
    assert (grid.column_ns, grid.whole_steps) == (column_ms * MS, whole)


def test_a_grid_is_steady_while_the_step_time_jitters() -> None:
    first = grid_for(50 * S, 50, 100 * MS, 500 * MS)
    assert grid_for(50 * S, 50, 100 * MS, 560 * MS, before=first) == first
    assert grid_for(50 * S, 50, 100 * MS, 800 * MS, before=first) != first
    assert grid_for(90 * S, 50, 100 * MS, 500 * MS, before=first) != first


def test_columns_keep_their_values_while_they_scroll() -> None:
    series = _series((i * 100 * MS, 50 + 50 * sin(i)) for i in range(1, 400))
    grid = grid_for(10 * S, 40, 100 * MS, 0)

    def picture(now_ns: int) -> list[ChartColumn | None]:
        return columns_of(series, stretches(grid, now_ns, 40, NO_STEPS))

    # Within a column nothing moves; then everything moves by exactly one cell.
    assert picture(30 * S)[:-1] == picture(30 * S + 90 * MS)[:-1]
    assert picture(30 * S)[1:-1] == picture(30 * S + grid.column_ns)[:-2]


def _means(columns: Iterable[ChartColumn | None]) -> list[float]:
    return [column.mean for column in columns if column]


@pytest.mark.parametrize(
    ("step_ms", "column_ms", "plain_swings", "ours_swing"),
    [(1_900, 1_000, 50, 8), (1_900, 4_500, 10, 3), (1_240, 500, 50, 8), (170, 100, 60, 14)],
)
def test_no_wave_appears_that_does_not_exist(
    step_ms: int, column_ms: int, plain_swings: float, ours_swing: float
) -> None:
    # GIVEN a steady run, busy for the second half of each step
    step = step_ms * MS
    starts = StepEdges.of(i * step for i in range(900_000 // step_ms))

    def share(end_ns: int) -> float:
        """Of the 100 ms before a moment that were busy."""
        parts = (end_ns - at * MS for at in range(0, 100, 2))
        return sum(2.0 for t_ns in parts if t_ns % step > step // 2)

    series = _series((t * 100 * MS, share(t * 100 * MS)) for t in range(1, 3_600))

    # WHEN columns keep time with them, THEN plain means would swing ...
    times = [ColumnSpan(i * column_ms * MS, (i + 1) * column_ms * MS) for i in range(20, 75)]
    plain = _means(columns_of(series, times))
    assert max(plain) - min(plain) > plain_swings

    # ... and ours do not
    grid = grid_for(80 * column_ms * MS, 80, 100 * MS, step)
    ours = _means(columns_of(series, stretches(grid, 350 * S, 80, starts))[5:-5])
    assert grid.whole_steps > 0
    assert len(ours) == 70
    assert max(ours) - min(ours) < ours_swing


def test_steps_that_are_not_alike_beat_with_nothing() -> None:
    stats = snapshot_at(START + 400 * S).steps
    assert stats is not None
    assert beat_ns(stats) == 1_240 * MS
    assert beat_ns(replace(stats, steps_s=0.5)) == 0, "one in a few is much longer"
    assert beat_ns(None) == 0


def test_the_step_that_runs_is_drawn_as_far_as_it_is_known() -> None:
    grid = grid_for(12 * S, 24, 100 * MS, S)
    times = stretches(grid, 10 * S, 24, StepEdges.of(i * S for i in range(9)))
    assert times[-1] == ColumnSpan(8 * S, 10_500 * MS)
    assert times[-5] == times[-1], "one step is one mean"
    assert times[-6] == ColumnSpan(7 * S, 8 * S)
    assert times[0] == ColumnSpan(-1_500 * MS, -S), "before the first step that is known"


@pytest.mark.parametrize("window_s", [600, 1_200, 3_600])
def test_a_spike_survives_any_zoom(window_s: int) -> None:
    series = _series((i * 100 * MS, 100.0 if i == 31_234 else 3.0) for i in range(1, 36_000))
    grid = grid_for(window_s * S, 60, 100 * MS, 0)
    columns = columns_of(series, stretches(grid, 3_599 * S, 60, NO_STEPS))
    assert [column.peak for column in columns if column].count(100.0) == 1


def test_a_wait_survives_any_zoom() -> None:
    series = _series((i * 100 * MS, 2.0 if i == 31_234 else 93.0) for i in range(1, 36_000))
    columns = columns_of(
        series, stretches(grid_for(3_600 * S, 60, 100 * MS, 0), 3_599 * S, 60, NO_STEPS)
    )
    assert [column.low for column in columns if column].count(2.0) == 1


def test_a_column_of_many_samples_is_solid_up_to_its_lowest() -> None:
    columns = [
        ChartColumn(60.0, 90.0, 20.0),
        ChartColumn(52.0, 90.0, 0.0),
        ChartColumn(60.0, 60.0, 60.0),
        ChartColumn(60.0, 75.0, 38.0),
        None,
    ]
    assert area_rows(columns, 5) == [
        "░░   ",
        "░░ ░ ",
        "▒▅█▒ ",
        "▒▒██ ",
        "█▒██ ",
    ]


def test_gaps_are_gaps() -> None:
    series = _series((i * 100 * MS, 80.0) for i in (*range(10, 20), *range(40, 50)))
    times = [ColumnSpan(i * 500 * MS, (i + 1) * 500 * MS) for i in range(11)]
    columns = columns_of(series, times)
    assert area_rows(columns, 1) == [" ▆▆▆   ▆▆▆ "]
    unknown = [column is None for column in columns]
    assert tick_row(times, NO_STEPS, unknown) == "┄───┄┄┄───┄"


def test_the_mean_is_by_time() -> None:
    series = _series([(100, 0.0), (200, 100.0)], 100)
    whole, part = columns_of(series, [ColumnSpan(0, 200), ColumnSpan(50, 200)])
    assert whole == ChartColumn(50.0, 100.0)
    # A column shorter than two samples has no peak of its own.
    assert part is not None
    assert part.mean == part.peak == pytest.approx(66.7, abs=0.1)


def test_ticks_stand_where_steps_begin() -> None:
    times = [ColumnSpan(i * 10, i * 10 + 10) for i in range(12)]
    assert tick_row(times, StepEdges.of((0, 45, 90))) == "┴───┴────┴──"
    assert tick_row(times, NO_STEPS) == "────────────"


def test_a_sine_looks_like_one() -> None:
    columns = _flat(*(50 - 50 * sin(i / 24 * 2 * pi) for i in range(24)))
    assert area_rows(columns, 3) == [
        # it begins in the middle and goes down first
        "              ▂▄▆███▆▄▂ ",
        "▄▁         ▁▄▇█████████▇",
        "██▆▄▂▁▁▁▂▄▆█████████████",
    ]
