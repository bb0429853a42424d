"""Bars, scales and lines of the memory view, as arithmetic."""

import msgspec
import pytest

from gpuwatch.tui.model.observations import OtherProcess
from gpuwatch.tui.verdict.memory.trends import MemoryTrend
from gpuwatch.tui.verdict.statistics import Slope
from gpuwatch.tui.verdict.window import MemoryPoint
from gpuwatch.tui.widgets.charts.columns import ChartColumn, ColumnSpan
from gpuwatch.tui.widgets.charts.levels import (
    LEAST_S,
    LevelScale,
    chart_rows,
    held_at,
    known_columns,
    line_at,
    scale_of,
    times_of,
    with_line,
)
from gpuwatch.tui.widgets.memory.holders import Part, cells_of, device_parts, legend
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.text import Charset, length, text_of
from tests.tui import fake_memory
from tests.tui.fake_memory import GIB, MIB, S
from tests.tui.fake_run import FakeRun, series_of
from tests.tui.states import ALLOCATOR

GPU = msgspec.structs.replace(
    FakeRun().snapshot().gpus[0],
    memory_used_bytes=70 * GIB,
    memory_total_bytes=140 * GIB,
    target_memory_bytes=67 * GIB,
)


def parts(*sizes: int) -> list[Part]:
    return [Part(f"part {i}", size, "█", "area") for i, size in enumerate(sizes)]


@pytest.mark.parametrize("width", [3, 7, 40, 181])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (61, 8, 3), (1, 10_000, 1), (0, 5, 5), (9, 0, 0)])
def test_a_bar_is_as_wide_as_it_should_be_and_hides_nobody(
    sizes: tuple[int, ...], width: int
) -> None:
    cells = cells_of(parts(*sizes), width)
    assert sum(cells) == width
    assert [cell > 0 for cell in cells] == [size > 0 for size in sizes]


def test_cells_are_in_proportion() -> None:
    assert cells_of(parts(50, 25, 25), 40) == [20, 10, 10]
    assert cells_of(parts(0, 0), 40) == [0, 0]
    assert cells_of(parts(1, 2, 3), 2) == [0, 0, 0], "no room for all of them"


def held(allocator: bool, own: bool) -> dict[str, int]:
    gpu = GPU if own else msgspec.structs.replace(GPU, target_memory_bytes=None)
    return {
        one.name: one.bytes // GIB for one in device_parts(gpu, ALLOCATOR if allocator else None)
    }


def test_the_parts_of_a_device_add_up_to_it() -> None:
    whole = {"allocated": 41, "cached": 25, "context": 1, "others": 0, "driver": 3, "free": 70}
    assert held(allocator=True, own=True) == whole
    assert held(allocator=True, own=False) == {
        **{"allocated": 41, "cached": 25, "context, others": 4},
        "free": 70,
    }, "a driver that tells nobody's share"
    alone = {"this process": 67, "others": 0, "driver": 3, "free": 70}
    assert held(allocator=False, own=True) == alone
    assert held(allocator=False, own=False) == {"in use": 70, "free": 70}


@pytest.mark.parametrize(
    ("holds", "others", "driver"),
    [((), 0, 3), ((2 * GIB,), 2, 1), ((9 * GIB,), 3, 0), ((2 * GIB, None), 3, 0)],
)
def test_what_no_process_holds_is_the_drivers(
    holds: tuple[int | None, ...], others: int, driver: int
) -> None:
    beside = tuple(
        OtherProcess(pid=pid, name="", memory_bytes=held, sm_percent=None)
        for pid, held in enumerate(holds)
    )
    parts = device_parts(msgspec.structs.replace(GPU, others=beside), ALLOCATOR)
    reported = {one.name: one.bytes // GIB for one in parts}
    assert (reported["others"], reported["driver"]) == (others, driver)


def test_what_is_in_the_bar_has_a_word_at_80_columns() -> None:
    given = device_parts(GPU, ALLOCATOR)
    shown = text_of(legend(given, 73))
    assert all(f"{part.glyph} {part.name}" in shown for part in given if part.bytes)


def test_a_legend_keeps_its_first_and_its_last() -> None:
    given = device_parts(GPU, ALLOCATOR)
    for width in range(20, 120):
        shown = text_of(legend(given, width)).rstrip()
        assert shown.startswith("█ allocated 41 GiB")
        if width >= 40:
            assert shown.endswith("free 70 GiB")
            assert len(shown) <= width
    assert length(legend(given, 120)) > 80


TREND = MemoryTrend(
    "tensors",
    Slope(MIB, MIB, MIB),
    MemoryPoint(10, 10 * S, 100),
    MemoryPoint(20, 20 * S, 200),
    None,
    None,
)


def test_what_hardly_moves_is_in_the_middle_of_its_scale() -> None:
    still = [ChartColumn(100.0, 101.0), None, ChartColumn(100.0, 100.0)]
    scale = scale_of(still, None)
    assert scale is not None
    assert [scale.low, scale.high] == pytest.approx([95.45, 105.55])
    assert scale_of(still, TREND) == LevelScale(100.0, 101.0), "growth fills the chart"
    assert scale_of([None], None) is None


def test_the_line_is_drawn_where_it_was_seen() -> None:
    times = [ColumnSpan(at * S, (at + 5) * S) for at in range(0, 25, 5)]
    assert line_at(TREND, times) == [None, 100, 150, 200, None]
    drawn = with_line(
        ["     ", "     "], [None, 100.0, 150.0, 199.0, None], LevelScale(100.0, 200.0)
    )
    assert drawn == ["  ── ", " ─   "]


def test_what_is_sampled_further_apart_than_the_columns_is_a_plateau() -> None:
    now_ns = 1_000 * S
    reported = fake_memory.series("workers", lambda second: float(second), now_ns)
    times = [ColumnSpan(at * S, (at + 2) * S) for at in range(960, 1_000, 2)]
    means = [column.mean for column in known_columns(reported, times) if column is not None]
    assert means == [mean for mean in (270.0, 280.0, 290.0, 300.0) for _ in range(5)]


def test_what_was_held_is_what_was_read_last_by_then() -> None:
    now_ns = 1_000 * S
    reported = fake_memory.series("workers", lambda second: float(second), now_ns)
    assert held_at(reported, now_ns) == 300.0
    assert held_at(reported, 995 * S) == 290.0
    assert held_at(reported, 3_000 * S) == 300.0, "nobody has read it since"
    assert held_at(reported, 600 * S) is None


def test_a_scale_of_one_row_has_both_its_ends() -> None:
    columns = [ChartColumn(float(mib * MIB), float(mib * MIB)) for mib in range(231, 257)]
    times = [ColumnSpan(at * S, (at + 1) * S) for at in range(26)]
    (one,) = chart_rows(columns, times, 1, None)
    assert text_of(one).startswith("    231 to 256 MiB┤")
    high, *_, low = chart_rows(columns, times, 3, None)
    assert text_of(high).startswith("   256 MiB┤")
    assert text_of(low).startswith("   231 MiB┤")


def test_a_chart_begins_where_the_first_sample_was_taken() -> None:
    view = View(FakeRun().snapshot(), 10, Charset.UNICODE, None)
    now_ns = view.snapshot.t_ns
    reported = series_of(lambda t_s: t_s, now_ns, S, samples=20)
    times = times_of(view, [reported], 90)
    columns = known_columns(reported, times)
    assert len(columns) == 90
    assert sum(column is not None for column in columns) > 75


@pytest.mark.parametrize(
    ("window_s", "chosen", "span_s"),
    [(30, False, 300), (30, True, 30), (600, True, 600), (3_600, True, 3_600), (1, True, LEAST_S)],
)
def test_a_chart_follows_the_window_that_was_chosen(
    window_s: int, chosen: bool, span_s: int
) -> None:
    view = View(FakeRun().snapshot(), window_s, Charset.UNICODE, None, window_chosen=chosen)
    reported = series_of(lambda t_s: t_s, view.snapshot.t_ns, S, samples=300)
    times = times_of(view, [reported], 100)
    assert times[-1].start_ns < view.snapshot.t_ns <= times[-1].end_ns
    seen_s = (times[-1].end_ns - times[0].start_ns) / S
    assert seen_s == pytest.approx(span_s, rel=0.01 if chosen else 0.26)


def test_all_that_is_known_fills_the_chart_whatever_was_sampled() -> None:
    view = View(FakeRun().snapshot(), 10, Charset.UNICODE, None)
    lengths = set()
    for samples in range(20, 3_500, 7):
        reported = series_of(lambda t_s: t_s, view.snapshot.t_ns, S, samples=samples)
        times = times_of(view, [reported], 30)
        column_ns = times[0].end_ns - times[0].start_ns
        assert times[0].start_ns <= view.snapshot.t_ns - (samples - 1) * S + column_ns
        assert (times[-1].end_ns - times[0].start_ns) / S <= 1.26 * samples
        lengths.add(column_ns)
    assert len(lengths) < 40, "columns do not become others with every sample"
