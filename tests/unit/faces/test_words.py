"""How much a number has changed, in words."""

from dataclasses import replace

import pytest

from gpuwatch.tui.wording.words import NumberChange, against, change_of, noise_of
from tests.tui.fake_run import FakeRun, S


@pytest.mark.parametrize(
    ("before", "now", "text", "role"),
    [
        (100.0, 138.0, "▲ +38%", "warning"),
        (100.0, 88.0, "▼ -12%", "good"),
        (100.0, 0.0, "▼ -100%", "good"),
        (1.0, 14.2, "▲ x14", "warning"),
        (0.0, 5.0, "▲ new", "warning"),
    ],
)
def test_glyph_sign_and_colour(before: float, now: float, text: str, role: str) -> None:
    assert change_of(before, now) == NumberChange(text, role)


def test_more_may_be_the_better_or_neither() -> None:
    assert change_of(100.0, 150.0, more="better") == NumberChange("▲ +50%", "good")
    assert change_of(150.0, 100.0, more="better") == NumberChange("▼ -33%", "warning")
    assert change_of(100.0, 150.0, more="neither") == NumberChange("▲ +50%", "strong")


def test_within_the_noise_nothing_has_changed() -> None:
    assert change_of(100.0, 109.0, noise=10.0) is None
    assert change_of(100.0, 111.0, noise=10.0) is not None
    assert change_of(100.0, 101.9) is None
    assert change_of(0.0, 0.0) is None


def test_what_is_not_known_has_not_changed() -> None:
    assert change_of(None, 1.0) is None
    assert change_of(1.0, None) is None
    assert noise_of(None, 1.0) is None


def test_two_means_differ_by_chance_by_three_of_their_errors() -> None:
    assert noise_of(3.0, 4.0) == pytest.approx(15.0)


def test_what_is_compared_with() -> None:
    run = FakeRun()
    before = run.snapshot()
    run.now_ns += 182 * S
    assert against(before, run.snapshot()) == "against step 18,204 (3 min ago)"
    assert against(run.snapshot(), before) == "against step 18,351 (3 min later)"
    assert against(replace(before, steps=None), run.snapshot()) == "against (3 min ago)"
