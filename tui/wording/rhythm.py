"""How a series goes up and down: its share of busy time, and its period."""

from dataclasses import dataclass
from statistics import fmean
from typing import Final

from ..model.snapshot import StepStats
from ..timeseries.series import Series, StepEdges
from .numbers import ms, percent

RESOLVED: Final = 3
"""Samples per period from which waits and work can be separated."""
LEAST_SWING: Final = 30.0
"""Points between trough and peak below which there is no busy and no idle."""
MOST_SAMPLES: Final = 3_000
"""Five minutes at ten per second: a share is read from the samples themselves, at every frame."""
LEAST_SAMPLES, MOST_SAMPLES_COMPARED = 80, 240
"""Newest samples that a period is estimated from."""
LEAST_PERIODS: Final = 3
ALIKE: Final = 1.25
"""Steps whose mean is more than so many times their median are too uneven to have a rhythm, and a
mean over several would hide the odd one."""
LEAST_LIKENESS: Final = 0.4
"""Correlation of the samples with themselves a period later."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Over one time range."""

    mean: float
    peak: float
    trough: float
    period_ns: float | None
    """None where none was found."""
    estimated: bool
    """The period comes from the samples, not from the steps."""
    duty: float | None
    """Part of the time above the middle between trough and peak, 0 to 1; None where the samples do
    not resolve the period, or nothing goes up and down."""


def beat_ns(stats: StepStats | None) -> int:
    """The step time that chart columns could alias with; 0 without steps or with uneven ones."""
    if stats is None or stats.steps_s * stats.p50_ms * ALIKE < 1000:
        return 0
    return int(stats.p50_ms * 1e6)


def rhythm_of(
    series: Series, edges: StepEdges, start_ns: int, end_ns: int, guess_ns: float | None = None
) -> Rhythm | None:
    """Of a time range; None where nothing was measured in it. `guess_ns`: the period by
    `period_of`, used where there are no steps."""
    summary = series.over(start_ns, end_ns, series.level_for(end_ns - start_ns, start_ns))
    if summary is None:
        return None
    step_ns = edges.mean_step_ns(start_ns, end_ns)
    period_ns = guess_ns if step_ns is None else step_ns
    return Rhythm(
        mean=summary.mean,
        peak=summary.high,
        trough=summary.low,
        period_ns=period_ns,
        estimated=step_ns is None,
        duty=_duty(series, start_ns, end_ns, period_ns, summary.low, summary.high),
    )


def rhythm_words(rhythm: Rhythm) -> list[str]:
    """Duty, period, peak and trough; the mean where there is no duty."""
    words = [f"mean {rhythm.mean:.0f}" if rhythm.duty is None else f"duty {percent(rhythm.duty)}"]
    if rhythm.period_ns is not None:
        words.append(f"period {'~' if rhythm.estimated else ''}{ms(rhythm.period_ns)}")
    return [*words, f"peak {rhythm.peak:.0f}", f"trough {rhythm.trough:.0f}"]


def _duty(
    series: Series, start_ns: int, end_ns: int, period_ns: float | None, low: float, high: float
) -> float | None:
    interval_ns = series.interval_ns
    if period_ns is None or period_ns < RESOLVED * interval_ns or high - low < LEAST_SWING:
        return None
    sampled = series.levels[0]
    if end_ns - start_ns > MOST_SAMPLES * interval_ns or sampled.start_ns >= end_ns:
        return None
    return sampled.share_above((low + high) / 2, start_ns, end_ns)


def period_of(series: Series, end_ns: int) -> float | None:
    """The period, in ns, after which the newest samples before a moment look like themselves again;
    None where they do not."""
    interval_ns, sampled = series.interval_ns, series.levels[0]
    end_ns = min(end_ns, series.end_ns)
    values: list[float] = []
    while len(values) < MOST_SAMPLES_COMPARED:
        newest = sampled.over(end_ns - interval_ns, end_ns)
        if newest is None:
            break
        values.append(newest.mean)
        end_ns -= interval_ns
    if len(values) < LEAST_SAMPLES:
        return None
    mean = fmean(values)
    swings = [value - mean for value in values]
    if max(swings) - min(swings) < LEAST_SWING:
        return None
    like = [_likeness(swings, lag) for lag in range(len(swings) // LEAST_PERIODS + 1)]
    return _first_peak(like, interval_ns)


def _likeness(swings: list[float], lag: int) -> float:
    """Autocorrelation at a lag of so many samples, about 1 to -1."""
    pairs = len(swings) - lag
    together = sum(one * other for one, other in zip(swings, swings[lag:], strict=False))
    return together / pairs / (sum(swing * swing for swing in swings) / len(swings))


def _first_peak(like: list[float], interval_ns: int) -> float | None:
    """After it first fell: the earliest peak that is nearly as high as any."""
    fell = next((lag for lag, value in enumerate(like) if value < LEAST_LIKENESS / 2), len(like))
    best = max(like[fell:], default=0.0)
    if best < LEAST_LIKENESS:
        return None
    for lag in range(max(fell, 1), len(like) - 1):
        before, value, after = like[lag - 1 : lag + 2]
        if value >= 0.8 * best and before <= value >= after:
            bend = before - 2 * value + after
            between = 0.5 * (before - after) / bend if bend else 0.0
            return (lag + between) * interval_ns if lag >= RESOLVED else None
    return None
