"""The stacked bar and its legend."""

from dataclasses import replace

import pytest

from gpuwatch.tui.model.snapshot import PhaseStats, Rare, Spread
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.steps.phase_table import rare_rows, table_rows
from gpuwatch.tui.widgets.steps.phases import allot, bar_row, legend_row
from gpuwatch.tui.widgets.text import Charset, length, text_of
from gpuwatch.tui.wording.steps import rare_words
from tests.tui.fake_run import PHASES, STEP_MS, FakeRun

STEP = tuple(PhaseStats(name, ms, ms / STEP_MS) for name, ms in PHASES)


def test_a_bar_fills_its_width_in_the_order_of_a_step() -> None:
    #      57 %                14 %   23 %      4 % 2 %
    assert text_of(bar_row(STEP, 42)) == " ░░░░░░░░░░░░░░░░░░░░░░░▒▒▒▒▒▒█████████▓·"


def test_phases_that_took_no_time_leave_no_trace() -> None:
    phases = (
        PhaseStats("data", 0.0, 0.0),
        PhaseStats("forward", 10.0, 1.0),
        PhaseStats("other", 0.0, 0.0),
    )
    assert text_of(bar_row(phases, 12)) == " ▒▒▒▒▒▒▒▒▒▒"
    assert text_of(legend_row(phases, 40)) == " ▒ forward 10.0 100%  ms per step"


def test_other_is_last_and_a_users_own_phases_stand_before_it() -> None:
    phases = (
        PhaseStats("other", 10.0, 0.1),
        PhaseStats("augment", 30.0, 0.3),
        PhaseStats("ema", 20.0, 0.2),
        PhaseStats("data", 40.0, 0.4),
    )
    assert text_of(bar_row(phases, 22)) == " ░░░░░░░░▚▚▚▚▚▚▞▞▞▞··"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (
            110,
            " ░ data wait 706 57%   ▒ forward 172 14%   █ backward 288 23%   "
            "▓ optimizer 46 4%   · other 28 2%  ms per step",
        ),
        (
            100,
            " ░ wait 706 57%  ▒ fwd 172 14%  █ bwd 288 23%  ▓ opt 46 4%  · other 28 2%  "
            "ms per step",
        ),
        (80, " ░ wait 706 57%  ▒ fwd 172 14%  █ bwd 288 23%  ▓ opt 46 4%  · other 28 2%  ms"),
        (50, " ░ wait 57%  ▒ fwd 14%  █ bwd 23%  ▓ opt 4%  +1"),
        (30, " ░ wait 57%  █ bwd 23%  +3"),
        (12, " ░ wait 57%"),
    ],
)
def test_the_legend_gets_shorter_but_stays_true(width: int, text: str) -> None:
    assert text_of(legend_row(STEP, width)) == text


def test_cells_add_up() -> None:
    assert allot((0.57, 0.14, 0.23, 0.04, 0.02), 100) == [57, 14, 23, 4, 2]
    assert allot((1.0, 1.0, 1.0), 10) in ([4, 3, 3], [3, 4, 3], [3, 3, 4])
    assert allot((), 10) == []
    assert allot((0.0, 0.0), 10) == [0, 0]
    for width in range(1, 60):
        assert sum(allot((0.571, 0.139, 0.233, 0.036, 0.021), width)) == width
        assert length(bar_row(STEP, width)) == max(1, width - 1)


def test_of_the_wait_it_shows_how_long_the_gpu_was_idle() -> None:
    shown = text_of(legend_row(STEP, 135, 0.36))
    assert shown.startswith(" ░ data wait 706 57%, GPU idle 36%   ▒ forward 172 14%")
    assert text_of(legend_row(STEP, 50, 0.36)).startswith(" ░ wait 57%, idle 36%  ▒ fwd 14%")


def test_of_a_checkpoint_the_table_shows_how_often_and_how_long_each() -> None:
    # 90 ms per step is nothing that a person who saw one of 903 ms would recognise.
    spread = Spread(0.0, 918.2, 946.6, 27.0, Rare(12, 903.0, 10.0))
    saved = PhaseStats("checkpoint", 90.3, 0.74, spread)
    assert rare_words(saved) == "every 10 steps, 903 ms each"
    assert [text_of(one) for one in rare_rows((*STEP, saved))] == [
        " ╳ checkpoint     every 10 steps, 903 ms each"
    ]


def test_the_table_of_few_rows_keeps_the_wait_for_data() -> None:
    snapshot = FakeRun().snapshot()
    assert snapshot.steps is not None
    phases = (PhaseStats("data", 0.1, 0.001), *STEP[1:])
    view = View(
        replace(snapshot, steps=replace(snapshot.steps, phases=phases)), 10, Charset.UNICODE, None
    )
    names = [text_of(one)[:16].strip() for one in table_rows(view, 80, 4)]
    assert names == ["ms per step", "░ data wait", "█ backward", "step (+3 more)"]
