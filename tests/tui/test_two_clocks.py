"""The arithmetic of a step on both clocks."""

import re
from collections.abc import Sequence
from itertools import accumulate

import pytest
from msgspec.structs import replace

from gpuwatch.tui.widgets.steps.lanes import (
    LanePiece,
    Pair,
    blocks_of,
    cells_of,
    gpu_pieces,
    host_pieces,
    marks_of,
    pairs_of,
)
from gpuwatch.tui.widgets.steps.two_clocks_drawing import (
    BLOCK_COLUMNS,
    Slant,
    candidates,
    plan_for,
    slant_rows,
    window_of,
)
from gpuwatch.tui.widgets.text import length, text_of
from tests.tui.fake_run import MS
from tests.tui.step_states import measured
from tests.unit.session.making import step, steps

STEP = step(7, 100, data_ms=10, forward_ms=20, backward_ms=40, optimizer_ms=5, other_ms=5)
ON_GPU = measured(STEP, 30.0, (2.0, 25.0, 50.0, 3.0, 0.0))


def test_a_steps_marks_on_both_clocks_are_as_far_apart_as_the_lags_show() -> None:
    pair = Pair(STEP, ON_GPU)
    here, there = marks_of(host_pieces(pair)), marks_of(gpu_pieces(ON_GPU))
    assert [t / MS for t in here] == [100 + ms for ms in accumulate((0, 10, 20, 40, 5))]
    assert [t / MS for t in there] == [130 + ms for ms in accumulate((0, 2, 25, 50, 3))]
    lags: tuple[int | None, ...] = (ON_GPU.lag_start_ns, ON_GPU.lag_data_ns, ON_GPU.lag_forward_ns)
    lags += (ON_GPU.lag_backward_ns, ON_GPU.lag_optimizer_ns)
    assert [b - a for a, b in zip(here, there, strict=True)] == list(lags)


def test_the_lag_at_the_optimizers_end_shows_what_lay_before_it() -> None:
    # Measured 3 ms later on the host than its phases say: so much of the rest came before it.
    assert ON_GPU.lag_optimizer_ns is not None
    row = replace(ON_GPU, lag_optimizer_ns=ON_GPU.lag_optimizer_ns - 3 * MS)
    pieces = host_pieces(Pair(STEP, row))
    rest = [(p.end_ns - p.start_ns) / MS for p in pieces if p.phase == "other"]
    assert rest == [3.0, 2.0]
    assert marks_of(pieces)[-1] == (100 + 78) * MS
    assert pieces[-1].end_ns == STEP.end_ns


def test_without_a_lag_the_rest_stands_at_the_end() -> None:
    pieces = host_pieces(Pair(STEP, None))
    assert [(p.end_ns - p.start_ns) / MS for p in pieces if p.phase == "other"] == [0.0, 5.0]


def test_a_column_shows_the_phase_that_it_lies_in_and_nothing_where_nothing_is_known() -> None:
    cells = cells_of([host_pieces(Pair(STEP, None))], 80 * MS, 5 * MS, 24)
    assert cells == [
        *[None] * 4,
        *["data"] * 2,
        *["forward"] * 4,
        *["backward"] * 8,
        *("optimizer", "other"),
        *[None] * 4,
    ]


def step_columns(lengths_us: Sequence[int], column_us: int, a_block: int = 1) -> list[str]:
    """The cells of each step (or block) of a lane, as one letter a column."""
    names = ("data", "forward", "backward", "optimizer")
    steps, at_ns = [], 0
    for number in range(120):
        ends = list(accumulate((us * 1_000 for us in lengths_us), initial=at_ns))
        pieces = [LanePiece(name, ends[i], ends[i + 1]) for i, name in enumerate(names)]
        steps.append((number, pieces))
        at_ns = ends[-1]
    columns = round(at_ns / column_us / 1_000)
    cells = cells_of(blocks_of(steps, a_block), 0, column_us * 1_000, columns)
    letters = "".join(cell[0] if cell else " " for cell in cells)
    return re.findall(r"d*f+b+o*", letters)


@pytest.mark.parametrize("column_us", [730, 900, 1_130, 1_270, 1_490])
def test_a_phase_shorter_than_a_column_is_in_every_step_or_in_none(column_us: int) -> None:
    # Equal steps look equal, but for a column more or less: no pattern that the run has not.
    drawn = step_columns((300, 4_700, 5_100, 700), column_us)
    assert len(drawn) == 120
    assert len({tuple(sorted(set(one))) for one in drawn}) == 1
    for phase in "dfbo":
        cells = [one.count(phase) for one in drawn]
        assert max(cells) - min(cells) <= 1


def test_what_is_long_in_one_step_alone_is_drawn_there() -> None:
    usual = (0, [LanePiece("data", 0, 1), LanePiece("forward", 1, 20)])
    late = (1, [LanePiece("data", 20, 32), LanePiece("forward", 32, 50)])
    more = [(n, [LanePiece("forward", 50 + 20 * (n - 2), 50 + 20 * (n - 1))]) for n in range(2, 40)]
    cells = cells_of(blocks_of([usual, late, *more], 1), 0, 4, 100)
    assert cells[:13] == ["forward"] * 5 + ["data"] * 3 + ["forward"] * 5
    assert "data" not in cells[13:]


def test_steps_of_less_than_a_few_columns_are_drawn_several_as_one() -> None:
    drawn = step_columns((1_000, 3_000, 5_000, 1_000), column_us=5_000, a_block=4)
    assert drawn == ["dffbbbbo"] * 30


def test_a_block_ends_where_a_step_is_not_known() -> None:
    steps = [(n, [LanePiece("forward", 10 * n, 10 * n + 10)]) for n in (0, 1, 2, 5, 6, 7)]
    spans = [(block[0].start_ns, block[-1].end_ns) for block in blocks_of(steps, 4)]
    assert spans == [(0, 30), (50, 80)]


def test_halves_meet_by_their_start() -> None:
    repeated = [step(7, 0, data_ms=1), STEP]
    assert pairs_of(repeated, [ON_GPU]) == [Pair(repeated[0], None), Pair(STEP, ON_GPU)]


def test_the_picture_ends_with_a_step_that_is_known_on_both_clocks() -> None:
    pairs = [Pair(STEP, ON_GPU), Pair(step(8, 180, data_ms=10), None)]
    assert candidates(pairs) == pairs[:1]
    assert candidates(pairs[1:]) == pairs[1:]


@pytest.mark.parametrize(("begins_ms", "shown"), [(0.01, 6), (160.0, 4), (890.0, 1)])
def test_the_window_holds_as_many_steps_as_the_lag_leaves_room_for(
    begins_ms: float, shown: int
) -> None:
    made = steps(20, data_ms=10, forward_ms=20, backward_ms=45, optimizer_ms=5)
    pairs = [Pair(one, measured(one, begins_ms, (0.0, 30.0, 45.0, 5.0, 0.0))) for one in made]
    window = window_of(pairs, pairs[15], columns=96)
    assert pairs[16 - shown].step.start_ns == window.from_ns
    assert window.column(pairs[15].on_gpu.gpu_end_ns) == pytest.approx(96)  # type: ignore[union-attr]
    assert window.column(window.from_ns) == 0.0


@pytest.mark.parametrize(("columns", "a_block"), [(190, 1), (96, 2), (44, 4), (30, 6)])
def test_far_ahead_steps_are_blocks_where_they_are_narrow(columns: int, a_block: int) -> None:
    made = steps(60, data_ms=10, forward_ms=20, backward_ms=45, optimizer_ms=5)
    pairs = [Pair(one, measured(one, 1_600.0, (0.0, 30.0, 45.0, 5.0, 0.0))) for one in made]
    window = window_of(pairs, pairs[40], columns)
    assert window.a_block == a_block
    if a_block > 1:
        block = a_block * 80 * MS / window.column_ns
        assert block == pytest.approx(BLOCK_COLUMNS, rel=0.2)


def test_where_the_gpu_is_sampled_the_window_holds_the_steps_that_were() -> None:
    made = steps(20, data_ms=10, forward_ms=70)
    parts = (10.0, 70.0, 0.0, 0.0, 0.0)
    pairs = [Pair(one, measured(one, 0.01, parts) if one.number > 17 else None) for one in made]
    assert window_of(pairs, pairs[-1], 190).from_ns == made[-3].start_ns


def test_a_line_leads_from_one_lane_to_the_other() -> None:
    straight = slant_rows([Slant(2.0, 2.0, "dim")], 4, 2)
    assert [text_of(line) for line in straight] == ["  ⡇ ", "  ⡇ "]
    far = slant_rows([Slant(0.0, 4.0, "dim")], 4, 1)
    assert [text_of(line) for line in far] == ["⠉⠒⠤⣀"]
    assert text_of(slant_rows([Slant(-8.0, 4.0, "dim")], 4, 1)[0]) == "⠤⣀⣀⣀"


def test_the_later_line_gives_a_shared_cell_its_colour() -> None:
    lines = [Slant(0.0, 0.0, "dim"), Slant(0.5, 0.5, "strong"), Slant(2.0, 2.0, "dim")]
    (drawn,) = slant_rows(lines, 3, 1)
    assert [(text, role) for text, role in drawn] == [("⣿ ", "strong"), ("⡇", "dim")]


def test_every_row_of_a_panel_has_a_use() -> None:
    for two_lanes in (True, False):
        for height in range(5, 40):
            plan = plan_for(height, two_lanes)
            lanes = (2 if two_lanes else 1) * plan.lanes
            rows = 1 + lanes + plan.slants + plan.numbers + plan.numbers_below + plan.legend
            rows += plan.words + (0 if two_lanes else 1)
            assert rows <= height
            assert (plan.slants > 0) is two_lanes


def test_a_lane_is_as_wide_as_the_panel() -> None:
    for columns in (1, 10, 33):
        for line in slant_rows([Slant(-3.0, 99.0, "dim")], columns, 3):
            assert length(line) == columns
