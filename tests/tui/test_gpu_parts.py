"""The parts of the GPU's view by themselves: which strips, on which scale, in how many rows."""

import pytest

from gpuwatch.tui.timeseries.series import Series
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.widgets.charts.columns import ColumnSpan, HeldColumns, columns_of
from gpuwatch.tui.widgets.charts.small import SECOND_NS, column_for, small_strip, times_of
from gpuwatch.tui.widgets.gpu.chart import ChartRows, plan_of
from gpuwatch.tui.widgets.gpu.strips import (
    SIGNALS,
    figures_for,
    most_wanted,
    round_up,
    scale_of,
    signals_of,
)
from tests.tui import gpu_states
from tests.tui.fake_run import GIB, MS, START, S, snapshot_at

RUN = gpu_states.h200(snapshot_at(START + 400 * S))
GPU = RUN.gpus[0]
FOUND = {series.name: series for series in RUN.series}


def growing(unit: str = "%", name: str = "sm", every_ns: int = 100 * MS) -> Growing:
    return Growing(name, name, unit, "gpm", 0, every_ns)


def flat(unit: str, value: float, name: str = "x") -> Series:
    grown = growing(unit, name)
    for at in range(1, 50):
        grown.add(at * 100 * MS, value)
    return grown.series()


@pytest.mark.parametrize(
    ("value", "top"), [(0.0, 1), (1, 1), (1.5, 2), (70, 100), (100, 100), (5_900, 10_000)]
)
def test_a_scale_of_its_own_ends_at_a_round_figure(value: float, top: float) -> None:
    assert round_up(value) == top


@pytest.mark.parametrize(
    ("name", "peak", "words"),
    [
        ("tensor", 60.0, "100 %"),
        ("pcie_rx", 5_900.0, "10 GB/s"),
        ("pcie_rx", 70.0, "100 MB/s"),
        ("power", 390.0, "700 W"),
        ("sm_clock", 1755.0, "1,980 MHz"),
        ("memory_clock", 3201.0, "5,000 MHz"),
        ("temperature", 41.0, "100 °C"),
        ("memory_used", 69.0 * GIB, "140 GiB"),
    ],
)
def test_what_has_a_limit_is_drawn_against_it(name: str, peak: float, words: str) -> None:
    assert scale_of(FOUND[name], GPU, peak).words == words


def test_figures_have_the_scales_unit() -> None:
    assert scale_of(FOUND["pcie_rx"], GPU, 5_900.0).figure(5_900.0) == "5.9"
    assert scale_of(FOUND["power"], GPU, 390.0).figure_of_scale(350.0, 10) == "350/700 W"
    assert scale_of(FOUND["sm_clock"], GPU, 1.0).figure_of_scale(1980.0, 10) == "1,980 MHz"


def test_nvlink_has_strips_where_something_goes_over_it() -> None:
    still = {"nvlink_rx": flat("MB/s", 0.0, "nvlink_rx"), "dram": flat("%", 9.0, "dram")}
    busy = {**still, "nvlink_rx": flat("MB/s", 900.0, "nvlink_rx")}
    times = [ColumnSpan(0, 5 * S)]
    for found, names in ((still, ["dram"]), (busy, ["dram", "nvlink_rx"])):
        columns = {name: columns_of(series, times) for name, series in found.items()}
        assert [signal.name for signal in signals_of(found, columns)] == names


def test_what_matters_least_leaves_first_and_the_order_stays() -> None:
    names = [signal.name for signal in most_wanted(SIGNALS, 6)]
    assert names == ["tensor", "dram", "pcie_rx", "power", "sm_clock", "memory_used"]


@pytest.mark.parametrize(
    ("room", "strips", "plan"),
    [
        (16, 5, ChartRows(6, 2, 5)),
        (16, 12, ChartRows(5, 1, 11)),
        (9, 12, ChartRows(4, 1, 5)),
        (60, 11, ChartRows(27, 3, 11)),
        (20, 0, ChartRows(20, 3, 0)),
        (2, 12, ChartRows(2, 1, 0)),
    ],
)
def test_rows_are_shared_out(room: int, strips: int, plan: ChartRows) -> None:
    assert plan_of(room, strips) == plan
    assert plan.chart + plan.each * plan.strips <= max(room, 1)


@pytest.mark.parametrize("width", [40, 59, 60, 89, 90, 110, 200])
def test_a_row_is_as_wide_as_the_panel(width: int) -> None:
    figures = figures_for(width)
    cells = figures.label + 1 + figures.columns + 1 + sum(c for _, c in figures.titles)
    assert cells == width


def test_held_columns_are_what_reading_anew_gives() -> None:
    grown, held = growing(), HeldColumns()
    for at in range(1, 400):
        grown.add(at * 100 * MS, float(at * 37 % 100))
        end = at * 100 * MS
        times = [ColumnSpan(t * 250 * MS, (t + 1) * 250 * MS) for t in range(end // (250 * MS) + 1)]
        times = times[-40:]
        assert held.of(grown.series(), times) == columns_of(grown.series(), times)


def test_held_columns_are_not_those_of_another_process() -> None:
    times, held = [ColumnSpan(2 * S, 3 * S)], HeldColumns()
    first, other = growing(), growing()
    for at in range(1, 50):
        first.add(at * 100 * MS, 80.0)
        if at > 15:
            other.add(at * 100 * MS, 20.0)
    assert [one.mean for one in held.of(first.series(), times) if one] == [80.0]
    assert [one.mean for one in held.of(other.series(), times) if one] == [20.0]


def test_a_sample_longer_than_a_column_fills_several_and_no_more() -> None:
    slow = growing("W", "power", S)
    slow.add(1 * S, 100.0)
    slow.add(2 * S, 300.0)
    times = [ColumnSpan(at * 250 * MS, (at + 1) * 250 * MS) for at in range(10)]
    reported = [column and column.mean for column in HeldColumns().of(slow.series(), times)]
    assert reported == [100.0] * 4 + [300.0] * 4 + [None] * 2


@pytest.mark.parametrize(
    ("columns", "step_ms", "seconds"), [(60, 100, 1), (30, 100, 2), (60, 1_240, 4), (0, 0, 60)]
)
def test_columns_of_a_small_strip_do_not_beat_with_the_steps(
    columns: int, step_ms: int, seconds: int
) -> None:
    assert column_for(60, columns, step_ms * MS) == seconds * SECOND_NS


def test_a_small_strip_is_blank_where_nothing_was_measured() -> None:
    grown = growing(every_ns=S)
    for second, value in ((3, 100.0), (4, 0.0), (5, 50.0)):
        grown.add(second * S, value)
    times = times_of(5 * S + 1, S, 6)
    assert small_strip(HeldColumns(), grown.series(), times) == "  █▁▄ "
    assert small_strip(HeldColumns(), None, times) == "      "
