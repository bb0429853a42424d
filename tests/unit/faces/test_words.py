"""How much a number has changed, in words."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.findings import Forecast
from gpuwatch.tui.verdict.idle_ledger import IdleLedger, Part
from gpuwatch.tui.wording.ledger import ledger_words, whole_percents
from gpuwatch.tui.wording.words import (
    NumberChange,
    against,
    change_of,
    gain_interval_of,
    gain_of,
    noise_of,
    word_of,
)
from tests.tui.fake_run import FakeRun, S
from tests.tui.states import a_ledger
from tests.unit.session.making import finding


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


def test_two_means_differ_by_chance_by_three_and_a_half_of_their_errors() -> None:
    assert noise_of(3.0, 4.0) == pytest.approx(17.5)


def test_what_is_compared_with() -> None:
    run = FakeRun()
    before = run.snapshot()
    run.now_ns += 182 * S
    assert against(before, run.snapshot()) == "against step 18,204 (3 min ago)"
    assert against(run.snapshot(), before) == "against step 18,351 (3 min later)"
    assert against(replace(before, steps=None), run.snapshot()) == "against (3 min ago)"


def test_whole_percents_of_the_gpus_time_add_up() -> None:
    """What rounding leaves goes to the parts that lost most by it."""
    thirds = a_ledger()
    third: dict[Part, float] = {**dict.fromkeys(thirds.shares, 0.0)}
    third |= {"used": 1 / 3, "input": 1 / 3, "launch": 1 / 3}
    ledger = IdleLedger(third, "gpm")
    assert sum(whole_percents(ledger).values()) == 100
    assert ledger_words(ledger) == ["well used 34%", "waits for data 33%", "launching 33%"]


@pytest.mark.parametrize("cells", range(10, 90, 7))
def test_what_does_not_fit_is_summed_up_as_rest(cells: int) -> None:
    words = ledger_words(a_ledger(), cells)
    figures = [int(word.rpartition(" ")[2].rstrip("%")) for word in words]
    assert sum(figures) == 100
    assert len(words) == 2 or len(" · ".join(words)) <= cells


def test_a_verdict_has_the_word_of_what_it_is() -> None:
    stopped = finding("stalled", sub="stopped")
    assert word_of(stopped) == "STOPPED"
    assert word_of(finding("stalled")) == "STALLED"
    assert word_of(finding("incomplete", sub="unsure")) == "NOT SURE"


@pytest.mark.parametrize(
    ("forecast", "short", "long"),
    [
        (Forecast(1.43, 1.2, 1.9), "~1.4x faster", "~1.4x faster (1.2 to 1.9x)"),
        (Forecast(1.43, 1.0, 1.43), "≤ 1.4x faster", "≤ 1.4x faster"),
        (Forecast(1.43, 1.43, None), "≥ 1.4x faster", "≥ 1.4x faster"),
        (Forecast(1.43, 1.1, None), "~1.4x faster", "~1.4x faster (1.1x or more)"),
    ],
    ids=["estimate", "bound", "least", "open"],
)
def test_a_gain_that_may_be_less_is_no_least_gain(
    forecast: Forecast, short: str, long: str
) -> None:
    """A few-shot learner whose worker takes the net's cores: "≥ 1.4x", and 1.24x was measured."""
    found = replace(finding("input"), speedup=1.43, forecast=forecast)
    assert (gain_of(found), gain_interval_of(found)) == (short, long)
