"""Stacks: names get shorter before they get cut."""

from gpuwatch.tui.verdict.stack_samples import FrameShare
from gpuwatch.tui.widgets.stacks.panel import _line, shared_out
from gpuwatch.tui.widgets.text import text_of
from gpuwatch.tui.wording.stacks import short_frame

FRAME = "_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291)"


def test_rows_are_shared_out() -> None:
    assert shared_out(3, 3, 2) == (1, 1)
    assert shared_out(3, 3, 3) == (1, 2)
    assert shared_out(3, 3, 4) == (2, 2)
    assert shared_out(3, 3, 9) == (3, 3)
    assert shared_out(5, 0, 4) == (4, 0)
    assert shared_out(0, 5, 4) == (0, 4)


def test_a_frame_gets_shorter_step_by_step() -> None:
    share = FrameShare(0.75, FRAME, "train (train.py:88)")
    texts = {
        width: text_of(_line(" main    ", share, width, True)).strip() for width in (60, 75, 85)
    }
    assert texts == {
        60: "main     75% _try_get_data (dataloader.py:1291)",
        75: "main     75% _try_get_data (dataloader.py:1291)  ← train (train.py:88)",
        85: "main     75% _try_get_data (dataloader.py:1291)  ← train (train.py:88)",
    }


def test_frames_that_are_not_as_expected_stay() -> None:
    assert short_frame("<module>") == "<module>"
    assert short_frame("f (a/b.py:1)") == "f (b.py:1)"
    assert short_frame("A.b.<locals>.c (x/y.py:2)", with_class=False) == "c (y.py:2)"
