"""How a series goes up and down, inferred from the steps or from the samples alone."""

import random
from collections.abc import Callable

import pytest

from gpuwatch.tui.timeseries.series import NO_STEPS, Series, StepEdges
from gpuwatch.tui.wording.rhythm import period_of, rhythm_of, rhythm_words
from tests.tui.fake_run import MS, START, STEP_MS, S, busy, series_of

NOW = START + 100 * S
STEP = round(STEP_MS * MS)


def wave(period_ms: float, work: float = 0.5, noise: float = 0.0) -> Callable[[int], float]:
    """Busy for a part of each period, idle for the rest."""
    chance = random.Random(3)

    def value(t_ns: int) -> float:
        high = t_ns / MS % period_ms >= (1 - work) * period_ms
        return (90.0 if high else 5.0) + chance.uniform(-noise, noise)

    return value


def series(of: Callable[[int], float], interval_ms: int = 100) -> Series:
    return series_of(of, NOW, interval_ms * MS)


def test_the_period_is_that_of_the_steps() -> None:
    edges = StepEdges.of(range(START, NOW, STEP))
    rhythm = rhythm_of(series(busy), edges, NOW - 10 * S, NOW)
    assert rhythm is not None
    assert rhythm.period_ns == STEP
    assert rhythm.duty == pytest.approx(534 / 1240, abs=0.04)
    assert rhythm_words(rhythm) == ["duty 44%", "period 1.2 s", "peak 92", "trough 1"]


def test_of_merged_rows_the_steps_are_counted() -> None:
    edges = StepEdges.of(range(0, 100 * S, S))
    edges._numbers[:] = type(edges._numbers)("q", range(20, 20 * 100, 20))
    assert edges.mean_step_ns(10 * S, 50 * S) == S / 20
    assert edges.mean_step_ns(10 * S, 11 * S) is None


@pytest.mark.parametrize("period_ms", [400, 730, 1_240, 2_500, 6_000])
@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_without_steps_it_is_inferred_from_the_samples_and_marked(
    period_ms: int, noise: float
) -> None:
    of = series(wave(period_ms, 0.43, noise))
    guess_ns = period_of(of, NOW)
    assert guess_ns == pytest.approx(period_ms * MS, rel=0.06)
    rhythm = rhythm_of(of, NO_STEPS, NOW - 10 * S, NOW, guess_ns)
    assert rhythm is not None
    assert rhythm.estimated
    assert rhythm_words(rhythm)[1].startswith("period ~")


def test_where_there_is_no_period_none_is_reported() -> None:
    chance = random.Random(4)
    for of in (lambda _: 93.0, lambda _: chance.uniform(0, 100), wave(20_000)):
        assert period_of(series(of), NOW) is None
    rhythm = rhythm_of(series(lambda _: 93.0), NO_STEPS, NOW - 10 * S, NOW)
    assert rhythm is not None
    assert rhythm_words(rhythm) == ["mean 93", "peak 93", "trough 93"]


def test_no_duty_where_the_samples_do_not_resolve_the_period() -> None:
    edges = StepEdges.of(range(START, NOW, 170 * MS))
    rhythm = rhythm_of(series(wave(170)), edges, NOW - 10 * S, NOW)
    assert rhythm is not None
    assert (rhythm.duty, rhythm.period_ns) == (None, 170 * MS)
    assert rhythm_words(rhythm)[0].startswith("mean ")


def test_nothing_is_reported_of_what_was_not_measured() -> None:
    assert rhythm_of(series(busy), NO_STEPS, START - 900 * S, START - 800 * S) is None
    assert period_of(series(busy), START - 800 * S) is None
