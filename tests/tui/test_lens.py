"""The arithmetic of the step lens."""

from itertools import accumulate

import pytest
from msgspec.structs import replace

from tests.tui.fake_run import MS
from tests.tui.step_states import measured
from tests.unit.session.making import step, steps
from tui.widgets.spans import length, text_of
from tui.widgets.steps.lanes import Pair, cells_of, gpu_pieces, host_pieces, marks_of, pairs_of
from tui.widgets.steps.lens_plan import plan_for
from tui.widgets.steps.lens_window import candidates, window_of
from tui.widgets.steps.slants import Slant, slant_rows

STEP = step(7, 100, data_ms=10, forward_ms=20, backward_ms=40, optimizer_ms=5, other_ms=5)
ON_GPU = measured(STEP, 30.0, (2.0, 25.0, 50.0, 3.0, 0.0))


def test_a_steps_marks_on_both_clocks_are_as_far_apart_as_the_lags_say() -> None:
    pair = Pair(STEP, ON_GPU)
    here, there = marks_of(host_pieces(pair)), marks_of(gpu_pieces(ON_GPU))
    assert [t / MS for t in here] == [100 + ms for ms in accumulate((0, 10, 20, 40, 5))]
    assert [t / MS for t in there] == [130 + ms for ms in accumulate((0, 2, 25, 50, 3))]
    lags = (ON_GPU.lag_start_ns, ON_GPU.lag_data_ns, ON_GPU.lag_forward_ns)
    lags += (ON_GPU.lag_backward_ns, ON_GPU.lag_optimizer_ns)
    assert [b - a for a, b in zip(here, there, strict=True)] == list(lags)


def test_the_lag_at_the_optimizers_end_tells_what_lay_before_it() -> None:
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


def test_a_column_shows_the_phase_in_its_middle_and_nothing_where_nothing_is_known() -> None:
    cells = cells_of(host_pieces(Pair(STEP, None)), 90 * MS, 10 * MS, 10)
    assert cells == [
        *(None, "data", "forward", "forward"),
        *("backward", "backward", "backward", "backward"),
        *("other", None),
    ]


def test_halves_meet_by_their_start() -> None:
    told_twice = [step(7, 0, data_ms=1), STEP]
    assert pairs_of(told_twice, [ON_GPU]) == [Pair(told_twice[0], None), Pair(STEP, ON_GPU)]


def test_the_lens_ends_with_a_step_that_is_known_on_both_clocks() -> None:
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
            rows += plan.told + (0 if two_lanes else 1)
            assert rows <= height
            assert (plan.slants > 0) is two_lanes


def test_a_lane_is_as_wide_as_the_panel() -> None:
    for columns in (1, 10, 33):
        for line in slant_rows([Slant(-3.0, 99.0, "dim")], columns, 3):
            assert length(line) == columns
