"""What a net on a CPU gains in another format, by what was tried in its run."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import FormatTimes, Settings
from gpuwatch.tui.verdict.notes import NOTES, NoteReporter
from gpuwatch.tui.verdict.rules.healthy import healthy
from gpuwatch.tui.verdict.rules.other_format import other_format, tried_words
from gpuwatch.tui.verdict.scoring import state
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

NET: dict[str, Any] = {"data_ms": 0.5, "forward_ms": 4, "backward_ms": 8, "optimizer_ms": 0.5}


def took(now: int, channels_last: int, bf16: int) -> FormatTimes:
    return FormatTimes(part=0.95, now_us=now, channels_last_us=channels_last, bf16_us=bf16)


def seen(
    tried: FormatTimes | None, autocast: str | None = "", dtype: str = "float32", **facts: Any
) -> StepWindow:
    settings = Settings(parameter_dtype=dtype, autocast=autocast, formats=tried)
    return window(even(60, **NET), settings=settings, **facts)


VGG = took(9_000, 8_000, 3_900)
"""Of 12 ms."""


def test_products_that_were_faster_in_bf16_shorten_their_part_of_the_step() -> None:
    """A VGG of 25 ms a step on two cores: 1.9 to 2.5x."""
    found = other_format(seen(VGG))
    assert found is not None
    assert (found.name, found.in_bf16) == ("bf16 and channels_last", True)
    saved = 12 / 13 * (0.75 * (1 - 3.9 / 9) + 0.25 * 0.25)
    assert found.forecast.speedup == pytest.approx(1 / (1 - saved))
    assert found.forecast.low < found.forecast.speedup < (found.forecast.high or 0.0)


def test_channels_last_comes_first_where_bf16_gives_hardly_more() -> None:
    """A net of depthwise convolutions, whose kernel for float32 in that order is ten times as
    fast."""
    found = other_format(seen(took(9_000, 3_000, 3_500)))
    assert found is not None
    assert (found.name, found.in_bf16) == ("channels_last", False)
    assert "autocast" not in found.line


def test_bf16_was_tried_in_channels_last_too_and_is_advised_so() -> None:
    """A DeepLab: 1.05x in bf16 alone, 1.28x in both, and float32 no faster in channels_last."""
    found = other_format(seen(took(9_000, 9_300, 5_800)))
    assert found is not None
    assert "channels_last" in found.line


def test_a_net_without_pictures_is_not_asked_for_another_order() -> None:
    found = other_format(seen(took(9_000, 9_000, 4_500)))
    assert found is not None
    assert found.name == "bf16"
    assert "channels_last" not in found.line


@pytest.mark.parametrize(
    ("tried", "facts"),
    [
        (None, {}),
        (took(9_000, 9_000, 12_000), {}),
        (took(9_000, 8_800, 9_000), {}),
        (took(1_000, 900, 600), {}),
        (VGG, {"autocast": "bfloat16"}),
        (VGG, {"gpu_present": True}),
        (took(0, 0, 0), {}),
        (VGG, {"dtype": "bfloat16"}),
    ],
    ids=[
        *("not tried", "slower", "as fast", "a small part", "autocast", "a GPU", "no time"),
        "another net since",
    ],
)
def test_nothing_is_said_where_nothing_gains(
    tried: FormatTimes | None, facts: dict[str, Any]
) -> None:
    """A transformer of 96 in bf16: 0.7 to 0.9x, for its attention's backward takes five times as
    long."""
    assert other_format(seen(tried, **facts)) is None


def test_products_take_no_more_than_the_net() -> None:
    found = other_format(seen(took(14_000, 14_000, 7_000)))
    assert found is not None
    assert found.forecast.speedup == pytest.approx(1 / (1 - 12 / 13 / 2))


def test_what_takes_longer_than_the_whole_net_was_not_measured() -> None:
    """Beside another training on the same cores: 9.5x was forecast, and bf16 gave 0.7x."""
    assert other_format(seen(took(114_000, 114_000, 461))) is None


def test_what_gives_less_than_a_tenth_is_not_advised_for_being_as_good() -> None:
    found = other_format(seen(took(9_000, 8_800, 7_700)))
    assert found is not None
    assert found.in_bf16


def test_results_of_half_the_size_are_half_of_the_new_pages() -> None:
    """A PointNet, in the kernel for 36 % of the time: 1.9x in bf16, 1.2x by its products."""
    small = took(3_000, 3_000, 1_500)
    calm = other_format(seen(small))
    faulting = other_format(seen(small, in_kernel=0.4, page_faults_s=200_000.0))
    assert calm is not None
    assert faulting is not None
    by_pages = 0.4 / 2 * (1 - 3 / 12)
    saved = 12 / 13 * 3 / 12 / 2 + by_pages
    assert faulting.forecast.speedup == pytest.approx(1 / (1 - saved), rel=0.01)
    assert calm.forecast.speedup < 1.2 < faulting.forecast.speedup


def test_what_was_tried_is_shown() -> None:
    text = "its products, tried in this run: 1.1x as fast in channels_last, 2.3x as fast in bf16"
    assert tried_words(VGG) == text
    assert tried_words(took(9_000, 8_000, 8_000)).endswith("1.1x as fast in channels_last")
    assert tried_words(took(9_000, 9_000, 9_000)) == ""


def test_a_net_that_is_the_limit_is_forecast_what_was_tried() -> None:
    found = healthy(seen(VGG))
    assert found is not None
    assert found.headline.endswith("are the limit, faster in bf16 and channels_last")
    assert "torch.bfloat16" in found.advice[0]
    assert found.forecast is not None
    assert found.forecast.speedup > 1.5
    assert tried_words(VGG) in [one.text for one in found.evidence]


def test_what_would_not_pay_is_not_advised() -> None:
    """By how large operations are it was: 0.7 to 1.1x in two public scripts."""
    facts = Settings(parameter_dtype="float32", autocast="", cpu_bf16=True, graph_nodes=30)
    rows = even(60, **NET)
    before = healthy(window(rows, settings=facts))
    after = healthy(seen(took(9_000, 9_000, 12_000)))
    assert before is not None
    assert after is not None
    assert any("bfloat16" in one for one in before.advice)
    assert not any("bfloat16" in one for one in after.advice)
    assert after.forecast is None


@pytest.mark.parametrize(("others", "urgent"), [(1.1, True), (4.0, False)])
def test_it_stands_below_a_headline_that_is_worth_less(others: float, urgent: bool) -> None:
    """A crowd counter: 1.1x by a rarer evaluation, which was the verdict, and 1.5x in bf16."""
    cause = state("evaluation", None, "warning", "evaluation takes 11% of the time")
    verdict = replace(cause, speedup=others, speedup_is="estimate")
    (note,) = NoteReporter().update(NOTES, seen(VGG), (verdict,))
    assert note.text.startswith("about 1.8x by torch.autocast")
    assert note.urgent is urgent


def test_beside_the_same_advice_it_is_no_note() -> None:
    limit = healthy(seen(VGG))
    assert limit is not None
    assert NoteReporter().update(NOTES, seen(VGG), (limit,)) == ()
