"""The interval of a forecast: nine times in ten the measured gain lies in it."""

from dataclasses import replace
from math import exp, hypot, log
from typing import Final

from ..findings import Finding, Forecast, Kind
from ..thresholds.causes import TARGET_BUDGET

MODEL_ERROR: Final[dict[Kind, tuple[float, float]]] = {
    "input": (0.75, 1.4),
    "h2d": (0.69, 1.43),
    "launch": (0.78, 1.6),
    "sync": (0.8, 1.25),
    "compute": (0.75, 1.5),
    "memory-bandwidth": (0.85, 1.15),
    "optimizer": (0.65, 1.25),
    "host": (0.87, 1.2),
    "checkpoint": (0.87, 1.4),
    "evaluation": (0.87, 1.4),
    "allocator": (0.85, 1.2),
    "contention": (0.8, 1.3),
}
"""The measured gain over the forecast one, from and to, of right verdicts in 78 generated runs on
H200s whose cause was then removed: where the next one lies nine times in ten, by Student's t of the
logarithms (24 of launches, 15 of the input, 13 checkpoints, 8 of copies, 5 of the host; of fewer
than five what was seen, and some more). Of launches graphs gave 0.78 to 1.74 times the forecast:
counters call a kernel of 1 to 4 us busy for twice as long as it takes in a graph (0.8 us against
2.2), and what the host still does for a graphed net varies by a third."""
PLAN_ERROR: Final = (0.6, 1.35)
"""The same of another number of workers, by the model of `loader.Feeding`: from 0.60, where workers
slow each other down, to 1.33, of 12 such runs."""
STAYS_ON_CPU: Final = 0.93
"""Without a GPU, where what lay beside the net goes (batches made, loggers, epochs begun), what
stays takes this part of what it took: the net has the core's caches to itself, and a core that has
not slept. The median of 81 generated runs on two cores, 0.93 of even seeds and 0.92 of odd ones,
whether it was sleep (0.93), Python (0.92) or arrays (0.97)."""
INPUT_ERROR_ON_CPU: Final = (0.82, 1.3)
"""Without a GPU the host's own clock is the truth: the measured gain over the forecast one was 0.87
to 1.22 nine times in ten, of 72 such runs whose batches were then free or their epochs seamless.
Rules were made on these, so a little more for new ones…"""
CORES_ERROR_ON_CPU: Final = (0.7, 1.45)
"""…and of 15 whose workers share the training's cores 0.62 to 1.2, most within a tenth: what a
freed core gives is not in the record."""
HOST_ERROR_ON_CPU: Final = (0.85, 1.2)
"""Of 14 whose logger went it was 0.86 to 1.12."""
OTHER_ERROR: Final = (0.7, 1.4)
"""Of kinds with fewer than two such runs."""


def forecast_of(finding: Finding) -> Forecast | None:
    """What the first action gives: the rule's own forecast, else of an upper bound 1 to that, and
    of an estimate the interval of the share together with the error of the model. None where the
    gain is unknown."""
    if finding.forecast is not None:
        return finding.forecast
    speedup = finding.speedup
    if speedup is None:
        return None
    if finding.speedup_is == "bound":
        # The share may be larger: ten of 19 samples are as well two thirds of the time.
        most = speedup * exp(_shift(finding.share, finding.share_high))
        return Forecast(most, 1.0, most)
    return interval_of(finding.kind, speedup, finding.share, finding.share_low, finding.share_high)


def interval_of(
    kind: Kind,
    speedup: float,
    share: float | None = None,
    share_low: float | None = None,
    share_high: float | None = None,
    error: tuple[float, float] | None = None,
) -> Forecast:
    """Errors of the share and of the model, `error`, are independent: their logarithms add as
    squares."""
    below, above = error or MODEL_ERROR.get(kind, OTHER_ERROR)
    low = hypot(log(below), _shift(share, share_low))
    high = hypot(log(above), _shift(share, share_high))
    return Forecast(speedup, max(1.0, speedup * exp(-low)), speedup * exp(high))


def alone_on_cpu(
    kind: Kind,
    speedup: float,
    share: float | None = None,
    share_low: float | None = None,
    share_high: float | None = None,
    error: tuple[float, float] = HOST_ERROR_ON_CPU,
) -> Forecast:
    """Without a GPU, of a cause that lies beside the net and goes: the net then has its caches and
    its core to itself. Of a small cause that is no more than half as much again."""
    stays = max(STAYS_ON_CPU, (1.0 + 1.0 / speedup) / 2)
    return interval_of(kind, speedup / stays, share, share_low, share_high, error)


def at_least(speedup: float) -> Forecast:
    """Of a remedy that is another algorithm: no less than this, and nobody knows how much more."""
    return Forecast(speedup, speedup, None)


def planned(speedup: float, on_cpu: bool) -> Forecast:
    """Of another number of workers."""
    below, above = INPUT_ERROR_ON_CPU if on_cpu else PLAN_ERROR
    return Forecast(speedup, max(1.0, below * speedup), above * speedup)


def with_interval(finding: Finding) -> Finding:
    """A finding whose gain follows from a share of samples: not a bound, for the share may be
    larger."""
    if finding.speedup is None:
        return finding
    shares = finding.share, finding.share_low, finding.share_high
    return replace(finding, forecast=interval_of(finding.kind, finding.speedup, *shares))


def seldom(finding: Finding) -> Finding:
    """A pause that comes as seldom as advised still costs its budget."""
    if finding.speedup is None:
        return finding
    speedup = max(1.0, finding.speedup * (1 - TARGET_BUDGET))
    shares = finding.share, finding.share_low, finding.share_high
    return replace(finding, forecast=interval_of(finding.kind, speedup, *shares))


def _shift(share: float | None, end: float | None) -> float:
    """How far an end of the share's interval moves the gain, as a logarithm."""
    if share is None or end is None:
        return 0.0
    return log(max(0.01, 1 - share) / max(0.01, 1 - end))
