"""The GPU's view at every size, as golden text, and what it says where signals are missing."""

import pytest

from gpuwatch.tui.widgets.text import Charset
from tests.tui import gpu_states, states
from tests.tui.golden_text import assert_golden, picture_of

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["h200", "hot_and_shared", "four", "before_hopper", "without"])
def test_the_view(state: str, size: tuple[int, int]) -> None:
    text = picture_of(size, getattr(gpu_states, state), keys=["2"])
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert_golden(f"gpu_{state}_{size[0]}x{size[1]}", text)


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        ([], "GPU 0 · H200 · 4 GPUs"),
        (["greater_than_sign"], "GPU 1 · H200 · 4 GPUs"),
        (["less_than_sign"], "GPU 3 · H200 · 4 GPUs"),
        (["greater_than_sign"] * 4, "GPU 0 · H200 · 4 GPUs"),
    ],
)
def test_keys_go_round_the_gpus(keys: list[str], title: str) -> None:
    text = picture_of((100, 30), gpu_states.four, keys=["2", *keys])
    assert title in text
    assert ("of 4" in text.splitlines()[0]) is bool(keys)


def test_the_chosen_gpu_is_the_one_that_is_drawn() -> None:
    slow = picture_of((100, 30), gpu_states.four, keys=["2", *["greater_than_sign"] * 2])
    assert " ▸ 2 " in slow
    peak = next(line for line in slow.splitlines() if "SM   0┤" in line).split()[-3]
    assert float(peak) < 60


def test_the_chosen_gpu_stays_among_those_shown() -> None:
    text = picture_of((50, 20), gpu_states.four, keys=["2", *["greater_than_sign"] * 3])
    assert " ▸ 3 " in text
    assert "and 2 more" in text


def test_what_has_no_counters_is_hatched_with_the_reason_and_no_zero() -> None:
    text = picture_of((100, 30), gpu_states.before_hopper, keys=["2"])
    assert "counters┤╱" in text
    assert "needs Hopper or newer" in text
    assert "tensor┤" not in text


def test_a_machine_without_a_gpu_shows_why_and_the_process() -> None:
    text = picture_of((80, 24), gpu_states.without, keys=["2"])
    assert "no NVIDIA driver (libnvidia-ml.so.1)" in text
    assert "training %" in text
    assert "hook 100 ms" in text


def test_before_the_first_sample_it_waits() -> None:
    assert "waiting for the first sample" in picture_of((80, 24), states.connecting, keys=["2"])


def test_the_cursor_reads_every_strip() -> None:
    text = picture_of((100, 30), gpu_states.h200, keys=["2", "tab", *["left"] * 9])
    assert "there" in text
    columns = [line[12:72] for line in text.splitlines() if "┤" in line[:13]]
    assert len({line.index("│") for line in columns}) == 1


def test_ascii() -> None:
    text = picture_of((100, 30), gpu_states.before_hopper, keys=["2"], charset=Charset.ASCII)
    assert text.isascii()
    assert "counters|//" in text
