"""The memory view at every size and in every state, as golden text."""

import pytest

from gpuwatch.tui.widgets.memory.trends import trend_rows
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.text import Charset, text_of
from tests.tui import memory_states
from tests.tui.fake_run import FakeRun
from tests.tui.golden_text import assert_golden, picture_of

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["growing", "steady", "without_gpu", "several_gpus"])
def test_memory_view(state: str, size: tuple[int, int]) -> None:
    text = picture_of(size, getattr(memory_states, state), ["4"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"memory_{state}_{size[0]}x{size[1]}", text)


def test_against_a_baseline_each_memory_shows_its_change() -> None:
    run = FakeRun().snapshot()
    before, now = memory_states.steady(run), memory_states.growing(run)
    view = View(now, 10, Charset.UNICODE, None, baseline=before)
    rows = [text_of(line) for line in trend_rows(view, 98, headed=True)]
    assert rows[0].endswith("▲ +50%"), "41.0 to 61.4 GiB"
    assert [line.rpartition("  ")[2] for line in rows[1:]] == ["as then", "as then"]


def test_the_cursor_reads_every_chart() -> None:
    keys = ["4", "tab", "tab", "tab", *["left"] * 12]
    text = picture_of((100, 30), memory_states.growing, keys)
    assert text.count("there ") == 4
    assert_golden("memory_cursor_100x30", text)
