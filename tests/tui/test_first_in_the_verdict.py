"""What no screen is too small for: a loss that is NaN."""

from dataclasses import replace

import pytest

from gpuwatch.tui.model.snapshot import Snapshot, unseen
from gpuwatch.tui.verdict.findings import Note
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.text import Charset, text_of
from gpuwatch.tui.widgets.verdict import parting_lines, verdict_rows
from tests.tui import states
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import picture_of
from tests.tui.test_new_user import advised

STOP = Note("loss is NaN since step 110: stop the run or go back", None, "hook", urgent=True)


def diverged(snapshot: Snapshot) -> Snapshot:
    """Its loss is NaN, its advice takes three lines, and settings are worth a word."""
    run = advised(snapshot)
    return replace(run, verdict=replace(run.verdict, notes=(STOP, *states.NOTES)))


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (40, 12)])
@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "6"])
def test_a_loss_that_is_nan_is_on_every_view(size: tuple[int, int], key: str) -> None:
    text = picture_of(size, diverged, keys=[key])
    assert "▲ STOP" in text
    assert "loss is NaN since step 110:" in text
    assert text.count("NaN") == 1
    assert "INPUT-BOUND" in text
    assert size == (40, 12) or "NEXT" in text


@pytest.mark.parametrize("size", [(20, 5), (50, 20), (160, 45), (200, 60)])
def test_it_is_on_screens_of_any_size(size: tuple[int, int]) -> None:
    text = picture_of(size, diverged)
    assert "INPUT-BOUND" in text
    assert "loss is NaN" in text
    assert text.count("NaN") == 1


def test_it_takes_no_room_from_what_to_do() -> None:
    text = " ".join(picture_of((80, 24), diverged).split())
    assert "the end of this sentence" in text
    assert "WHY" in text


def test_the_headline_stays_and_nothing_else_comes_before_it() -> None:
    view = View(states.ended(diverged(FakeRun().snapshot())), 10, Charset.UNICODE, None)
    for height in (1, 2, 3):
        rows = [text_of(row) for row in verdict_rows(view, 80, height)]
        assert len(rows) == height
        assert any("INPUT-BOUND" in row for row in rows)
        assert any("loss is NaN" in row for row in rows) is (height > 1)


def test_it_stays_in_the_terminal_with_or_without_a_verdict() -> None:
    lines = parting_lines(diverged(FakeRun().snapshot()), 200)
    assert [line.split()[1] for line in lines[:2]] == ["INPUT-BOUND", "STOP"]
    nothing = unseen(7, "train.py", 0, 0.0)
    nothing = replace(nothing, verdict=replace(nothing.verdict, notes=(STOP,)))
    assert parting_lines(nothing, 200) == [f"▲ STOP  {STOP.text}"]
