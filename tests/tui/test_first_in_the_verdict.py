"""What no screen is too small for: a loss that is NaN, a second cause that is large."""

import re
from collections.abc import Callable
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


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "6"])
def test_what_gains_more_than_the_verdict_is_on_every_view_and_nothing_to_stop_for(
    key: str,
) -> None:
    """ "STOP torch.autocast(…)" stood there."""
    faster = Note("about 1.6x by torch.autocast", None, "hook", urgent=True, gain=1.6)

    def could_be_faster(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, verdict=replace(snapshot.verdict, notes=(faster,)))

    text = picture_of((80, 24), could_be_faster, keys=[key])
    assert "▲ MORE   about 1.6x by torch.autocast" in text
    assert "STOP" not in text


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


def second_cause(share: float) -> Callable[[Snapshot], Snapshot]:
    """Beside the wait for data, which is 57 % of the step."""

    def change(snapshot: Snapshot) -> Snapshot:
        host = replace(
            snapshot.verdict.finding, kind="host", sub=None, share=share, headline="slow"
        )
        growth = snapshot.verdict.contributors
        return replace(snapshot, verdict=replace(snapshot.verdict, contributors=(*growth, host)))

    return change


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (100, 30), (120, 40), (160, 45), (200, 60)])
def test_a_second_cause_of_a_third_of_the_first_is_on_the_screen(
    size: tuple[int, int],
) -> None:
    text = picture_of(size, second_cause(0.41))
    assert re.search(r"also:?\s+host 41%", text)
    assert "NEXT" in text
    assert size[0] < 60 or "706 of 1,240 ms a step wait" in text


def test_it_stays_beside_long_advice_and_a_loss_that_is_nan() -> None:
    text = picture_of((80, 24), lambda run: second_cause(0.41)(diverged(run)))
    assert "also   host 41%: slow" in text
    assert "loss is NaN" in text
    assert "the end of this sentence" in " ".join(text.split())


def test_smaller_causes_take_no_row_from_evidence() -> None:
    assert picture_of((80, 24), second_cause(0.1)) == picture_of((80, 24))


def test_a_note_keeps_its_row() -> None:
    def change(snapshot: Snapshot) -> Snapshot:
        return second_cause(0.41)(states.noted(snapshot))

    text = picture_of((100, 30), change)
    assert "also   host 41%: slow" in text
    assert "note   anomaly detection was left on" in text
