"""The cursor of the charts."""

import msgspec

from gpuwatch.tui.model.snapshot import Sawtooth
from gpuwatch.tui.widgets.charts.columns import ChartColumn, ColumnSpan
from gpuwatch.tui.widgets.charts.cursor import column_at, marked, moved
from gpuwatch.tui.widgets.gpu.sawtooth import phase_at, read_out
from tests.tui.fake_run import MS, START, S, snapshot_at
from tests.tui.states import on_gpm

CELLS = [ColumnSpan(at * 100, at * 100 + 100) for at in range(10, 30)]


def test_it_begins_at_the_newest_column_and_stays_in_the_picture() -> None:
    assert moved(CELLS, None, -1) == 2_950
    assert moved(CELLS, 2_950, -1) == 2_850
    assert moved(CELLS, 2_950, -10) == 1_950
    assert moved(CELLS, 1_050, -10) == 1_050
    assert moved(CELLS, 2_899, +1) == 2_950
    assert moved(CELLS, 2_950, +1) == 2_950
    assert moved(CELLS, None, -9_999) == 1_050
    assert moved((), None, -1) is None


def test_one_that_scrolled_out_of_the_picture_comes_back_at_its_edge() -> None:
    assert column_at(CELLS, 999) is None
    assert moved(CELLS, 999, -1) == 1_050
    assert moved(CELLS, 3_000, -1) == 2_950


def test_it_stands_in_the_column_that_holds_its_moment() -> None:
    assert [column_at(CELLS, t_ns) for t_ns in (1_000, 1_099, 1_100, 2_999)] == [0, 0, 1, 19]
    assert marked(["abc", "def"], 1) == ["a│c", "d│f"]
    assert marked(["abc"], None) == ["abc"]


def _saw() -> Sawtooth:
    saw = on_gpm(snapshot_at(START + 400 * S)).sawtooth
    assert saw is not None
    return saw


def test_it_reads_the_time_the_values_the_step_and_the_phase() -> None:
    snapshot = snapshot_at(START + 400 * S)
    saw = _saw()
    t_ns = snapshot.t_ns - 2_200 * MS
    began_ns = saw.step_starts_ns[saw.step_starts_ns.before(t_ns) - 1]
    step = msgspec.structs.replace(
        snapshot.recent[0], start_ns=began_ns, end_ns=began_ns + 1_240 * MS
    )
    column, tensor = ChartColumn(67.2, 67.2), ChartColumn(37.0, 71.0, 2.0)
    assert read_out(saw, [step], t_ns, snapshot.t_ns, column, tensor) == [
        *("-2.2 s", "SM 67", "tensor 37 (2–71)", "step 18,203", "~backward")
    ]
    assert read_out(saw, [], t_ns, snapshot.t_ns, None, None) == [
        *("-2.2 s", "SM not measured", "step 18,203")
    ]
    assert read_out(saw, [], t_ns, t_ns + 300 * S, ChartColumn(9, 90.4), None)[:2] == [
        *("-5 min", "SM 9, peak 90")
    ]


def test_the_phase_is_reported_of_plain_steps_alone() -> None:
    step = msgspec.structs.replace(
        snapshot_at(START + 400 * S).recent[0], start_ns=10 * S, end_ns=10 * S + 1_240 * MS
    )
    moments = {0: "data", 705: "data", 707: "forward", 900: "backward", 1_190: "optimizer"}
    for at_ms, phase in moments.items():
        assert phase_at([step], 10 * S + at_ms * MS) == phase
    assert phase_at([step], 9 * S) is None
    assert phase_at([step], 12 * S) is None
    assert phase_at([msgspec.structs.replace(step, fetches=4)], 10 * S) is None
    assert phase_at([msgspec.structs.replace(step, count=4)], 10 * S) is None
