"""The sawtooth's arithmetic, as pictures."""

from math import pi, sin

import pytest

from tests.tui.fake_run import MS, S
from tui.snapshot import Sample, Sawtooth
from tui.widgets.charset import Charset
from tui.widgets.columns import (
    Column,
    Stretch,
    area_rows,
    columns_of,
    grid_for,
    stretches,
    tick_row,
)


def _flat(*values: float | None) -> list[Column | None]:
    return [None if value is None else Column(value, value) for value in values]


def _sawtooth(samples: list[Sample], interval_ns: int, starts: tuple[int, ...] = ()) -> Sawtooth:
    return Sawtooth("GPU busy %", "nvml", "", interval_ns, tuple(samples), starts)


def test_area_is_eighths_of_cells() -> None:
    rows = area_rows(_flat(0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100), 2)
    assert rows == [
        #    a quarter of the scale is half a cell here
        "     ▂▄▆█",
        "▁▂▄▆█████",
    ]


def test_the_peak_is_shade_above_the_mean() -> None:
    columns = [Column(25.0, 100.0), Column(25.0, 50.0), Column(25.0, 25.0)]
    assert area_rows(columns, 4) == [
        "░  ",
        "░  ",
        "░░ ",
        "███",
    ]


def test_a_measured_nothing_shows_and_what_was_not_measured_does_not() -> None:
    assert area_rows(_flat(0, None, 0), 1) == ["▁ ▁"]


def test_other_scales_and_values_beyond_them() -> None:
    assert area_rows(_flat(10, 15, 20, 99), 1, 10, 20) == ["▁▄██"]


def test_charsets_keep_every_cell() -> None:
    rows = area_rows([Column(20, 100), Column(55, 55), Column(100, 100)], 2)
    assert rows == ["░▁█", "▃██"]
    assert [Charset.ASCII.translate(row) for row in rows] == [":.#", ":##"]
    assert [Charset.CONSOLE.translate(row) for row in rows] == ["░ █", "▄██"]


def test_never_finer_than_the_samples() -> None:
    assert grid_for(10 * S, 1_000, 200 * MS, 0).column_ns == 200 * MS


@pytest.mark.parametrize(
    ("asked_ms", "step_ms", "column_ms", "whole"),
    [
        (100, 1_240, 100, 0),  # many columns a step: the teeth show
        (400, 1_240, 1_240, 1),  # would beat: one step a column
        (1_300, 1_240, 1_240, 1),
        (2_000, 1_240, 2_480, 2),
        (4_000, 1_240, 4_000, 0),  # many steps a column: a plain mean
        (100, 90, 180, 2),  # never finer than the 100 ms samples
        (100, 0, 100, 0),  # no step known
    ],
)
def test_columns_snap_to_whole_steps(
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
    samples = [Sample(i * 100 * MS, 50 + 50 * sin(i)) for i in range(400)]
    saw = _sawtooth(samples, 100 * MS)
    grid = grid_for(10 * S, 40, 100 * MS, 0)

    def picture(now_ns: int) -> list[Column | None]:
        return columns_of(saw, stretches(grid, now_ns, 40, ()))

    # Within a column nothing moves; then everything moves by exactly one cell.
    assert picture(30 * S)[:-1] == picture(30 * S + 90 * MS)[:-1]
    assert picture(30 * S)[1:-1] == picture(30 * S + grid.column_ns)[:-2]


def test_no_wave_appears_that_does_not_exist() -> None:
    # GIVEN a steady run: 1.9 s a step, busy for the second half of each
    step = 1_900 * MS
    starts = tuple(i * step for i in range(200))
    samples = [
        Sample(t * 100 * MS, 100.0 if (t * 100 * MS - 50 * MS) % step > step // 2 else 0.0)
        for t in range(1, 3_600)
    ]
    saw = _sawtooth(samples, 100 * MS, starts)

    # WHEN columns are a second wide, THEN plain means would swing between 0 and 100 ...
    times = [Stretch(i * S, (i + 1) * S) for i in range(100, 180)]
    plain = [column.mean for column in columns_of(saw, times) if column]
    assert max(plain) - min(plain) > 50

    # ... and ours do not
    grid = grid_for(80 * S, 80, 100 * MS, step)
    ours = columns_of(saw, stretches(grid, 350 * S, 80, starts))
    means = [column.mean for column in ours if column]
    assert len(means) >= 78
    assert max(means) - min(means) < 8
    assert all(column.peak == 100 for column in ours if column)


def test_a_spike_survives_any_zoom() -> None:
    samples = [Sample(i * 100 * MS, 100.0 if i == 2_345 else 3.0) for i in range(6_000)]
    saw = _sawtooth(samples, 100 * MS)
    columns = columns_of(saw, stretches(grid_for(600 * S, 60, 100 * MS, 0), 599 * S, 60, ()))
    assert [column.peak for column in columns if column].count(100.0) == 1


def test_gaps_are_gaps() -> None:
    samples = [Sample(i * 100 * MS, 80.0) for i in (*range(10, 20), *range(40, 50))]
    times = [Stretch(i * 500 * MS, (i + 1) * 500 * MS) for i in range(11)]
    columns = columns_of(_sawtooth(samples, 100 * MS), times)
    assert area_rows(columns, 1) == [" ▆▆▆   ▆▆▆ "]


def test_the_mean_is_by_time() -> None:
    saw = _sawtooth([Sample(100, 0.0), Sample(200, 100.0)], 100)
    whole, part = columns_of(saw, [Stretch(0, 200), Stretch(50, 200)])
    assert whole == Column(50.0, 100.0)
    # A column shorter than two samples has no peak of its own.
    assert part is not None
    assert part.mean == part.peak == pytest.approx(66.7, abs=0.1)


def test_ticks_stand_where_steps_begin() -> None:
    times = [Stretch(i * 10, i * 10 + 10) for i in range(12)]
    assert tick_row(times, (0, 45, 90)) == "┴───┴────┴──"
    assert tick_row(times, ()) == "────────────"


def test_a_sine_looks_like_one() -> None:
    columns = _flat(*(50 - 50 * sin(i / 24 * 2 * pi) for i in range(24)))
    assert area_rows(columns, 3) == [
        # it begins in the middle and goes down first
        "              ▂▄▆███▆▄▂ ",
        "▄▁         ▁▄▇█████████▇",
        "██▆▄▂▁▁▁▂▄▆█████████████",
    ]
