"""The bars of the evaluation: what each asks for, what was measured, and whether that passes."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.figures import (
    Scored,
    bounds_below_truth,
    changes_a_thousand_steps,
    forecast_errors,
    leak_alarms,
    leaks_found,
    macro_f1,
    middle,
    negatives,
    percentile_90,
    positives,
    seconds_to_right,
    steps_to_right,
)

NOT_MEASURED: Final = "n/a"


@dataclass(frozen=True)
class Figure:
    """One figure of one tool."""

    text: str
    passes: bool | None = None
    """None where there is no bar, or nothing to hold against it."""


@dataclass(frozen=True)
class Bar:
    """A row of the table."""

    what: str
    asks: str
    """"" where it is only reported."""
    measure: Callable[[Sequence[Scored]], Figure]


def verdicts(rows: Sequence[Scored]) -> Figure:
    """Top verdicts right over the positives."""
    return part_right([score.right for _, score in positives(rows)], least=0.95)


def with_runner_up(rows: Sequence[Scored]) -> Figure:
    """Verdict or runner-up right."""
    return part_right([score.right_or_second for _, score in positives(rows)], least=1.0)


def subs(rows: Sequence[Scored]) -> Figure:
    """Subs right, where the kind is and the truth has one."""
    known = [score.sub_right for _, score in positives(rows) if score.right]
    return part_right([right for right in known if right is not None])


def false_alarms(most: int) -> Callable[..., Figure]:
    """Negatives called bound, of which there may be so many."""

    def measure(rows: Sequence[Scored]) -> Figure:
        alarms = [score.false_alarm for _, score in negatives(rows)]
        reported = f"{sum(alarms)} of {len(alarms)}"
        return Figure(reported, sum(alarms) <= most) if alarms else not_measured()

    return measure


def f1(rows: Sequence[Scored]) -> Figure:
    """Macro-F1 over all that counts."""
    value = macro_f1([*positives(rows), *negatives(rows)])
    return Figure(f"{value:.2f}") if value is not None else not_measured()


def time_in_steps(rows: Sequence[Scored]) -> Figure:
    """Steps to the first right verdict."""
    steps = steps_to_right(rows)
    half = middle(steps)
    if half is None:
        return not_measured()
    passes = half <= 20 and max(steps) <= 100
    return Figure(f"median {_time(half, 0)}, most {_time(max(steps), 0)}", passes)


def time_in_seconds(rows: Sequence[Scored]) -> Figure:
    """The same in seconds."""
    times = seconds_to_right(rows)
    half = middle(times)
    if half is None:
        return not_measured()
    return Figure(f"median {_time(half, 1)}, most {_time(max(times), 1)}")


def flaps(rows: Sequence[Scored]) -> Figure:
    """Verdict changes per 1,000 steps."""
    value = changes_a_thousand_steps(rows)
    return not_measured() if value is None else Figure(f"{value:.2f}", value <= 0.5)


def forecast(rows: Sequence[Scored]) -> Figure:
    """Error of all forecasts."""
    errors = forecast_errors(rows)
    half, most = middle(errors), percentile_90(errors)
    passes = None if half is None or most is None else half <= 0.05 and most <= 0.15
    return Figure(_errors(errors).text, passes)


def estimates(rows: Sequence[Scored]) -> Figure:
    """Error of what was called an estimate."""
    return _errors(forecast_errors(rows, "estimate"))


def bounds(rows: Sequence[Scored]) -> Figure:
    """Bounds that the truth went beyond."""
    below, every = bounds_below_truth(rows)
    return Figure(f"{below} of {every}", below == 0) if every else not_measured()


def waits(rows: Sequence[Scored]) -> Figure:
    """Data-wait share against the truth of the same run, points."""
    known = [result.data_wait.error_points for result, _ in rows if result.data_wait]
    half = middle(known)
    if half is None:
        return not_measured()
    passes = half <= 1.0 and max(known) <= 3.0
    return Figure(f"median {half:.2f}, most {max(known):.2f} ({len(known)})", passes)


def leaks(rows: Sequence[Scored]) -> Figure:
    """Leaks found by step 1,250."""
    found, every = leaks_found(rows)
    return Figure(f"{found} of {every}", found == every) if every else not_measured()


def false_leaks(rows: Sequence[Scored]) -> Figure:
    """A leak reported where there is none."""
    wrongly, every = leak_alarms(rows)
    return Figure(f"{wrongly} of {every}", wrongly == 0) if every else not_measured()


def actions(rows: Sequence[Scored]) -> Figure:
    """First advice that is the measured fix."""
    asked = [result.action_is_the_switch for result, _ in positives(rows)]
    return part_right([right for right in asked if right is not None], least=0.9)


def cost(rows: Sequence[Scored]) -> Figure:
    """Steps a second lost to being watched, beside the noise of the bare runs."""
    known = [result for result, _ in rows if result.cost is not None]
    lost = middle([100 * result.cost for result in known if result.cost is not None])
    noise = middle([100 * result.cost_noise for result in known])
    if lost is None or noise is None:
        return not_measured()
    return Figure(f"median {lost:+.2f} % (bare runs differ by {noise:.2f} %)")


BARS: Final = (
    Bar("top verdict right, over the positives", "≥ 95 %", verdicts),
    Bar("right, or the first thing beside it", "100 %", with_runner_up),
    Bar("sub right, where the kind is", "", subs),
    Bar('false "bound" over the negatives', "≤ 1", false_alarms(most=1)),
    Bar("macro-F1", "", f1),
    Bar(
        "steps to the first right verdict, steady causes", "median ≤ 20, most ≤ 100", time_in_steps
    ),
    Bar("seconds to it, since attaching", "", time_in_seconds),
    Bar("verdict changes per 1,000 steps", "≤ 0.5", flaps),
    Bar("forecast against measured gain", "median ≤ 5 %, p90 ≤ 15 %", forecast),
    Bar("… where it is called an estimate", "", estimates),
    Bar("… bounds that the gain went beyond", "0", bounds),
    Bar("leaks found by step 1,250", "all", leaks),
    Bar("leaks reported where there is none", "0", false_leaks),
)
"""Of every tool."""
OURS_ALONE: Final = (
    Bar("data-wait share against the truth, points", "median ≤ 1, most ≤ 3", waits),
    Bar("first advice is the measured fix", "≥ 90 %", actions),
    Bar("cost of watching", "", cost),
)
"""What only gpuwatch is asked for."""


def part_right(rights: Sequence[bool], least: float | None = None) -> Figure:
    """How many of them are, and whether that is enough."""
    if not rights:
        return not_measured()
    part = sum(rights) / len(rights)
    passes = None if least is None else part >= least
    return Figure(f"{sum(rights)} of {len(rights)} ({100 * part:.0f} %)", passes)


def _time(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"


def _errors(errors: Sequence[float]) -> Figure:
    half, most = middle(errors), percentile_90(errors)
    if half is None or most is None:
        return not_measured()
    return Figure(f"median {100 * half:.1f} %, p90 {100 * most:.1f} % ({len(errors)})")


def not_measured() -> Figure:
    """Nothing to hold against a bar."""
    return Figure(NOT_MEASURED)


LEAST: Final = 0.8
INPUT: Final = frozenset({"input"})
HOST: Final = frozenset({"host"})
STALL: Final = frozenset({"checkpoint", "evaluation"})
"""What now and then holds the whole training up."""
ASKED: Final = INPUT | HOST | STALL


def right_on(kinds: Collection[str], least: float | None = None) -> Callable[..., Figure]:
    """The part of the verdicts that is right, of the positives whose cause is one of these."""

    def measure(rows: Sequence[Scored]) -> Figure:
        return part_right(
            [score.right for result, score in positives(rows) if result.kinds[0] in kinds], least
        )

    return measure


def on_the_others(rows: Sequence[Scored]) -> Figure:
    """Causes that nothing from outside can decide for sure."""
    return part_right(
        [score.right for result, score in positives(rows) if result.kinds[0] not in ASKED]
    )


BARS_WITHOUT_PROBE: Final = (
    Bar("input, host and stall verdicts right", "≥ 80 %", right_on(ASKED, LEAST)),
    Bar("… input", "", right_on(INPUT)),
    Bar("… host", "", right_on(HOST)),
    Bar("… stall: checkpoint, evaluation", "", right_on(STALL)),
    Bar('false "bound" over the negatives', "0", false_alarms(most=0)),
    Bar("all other causes right", "", on_the_others),
    Bar("top verdict right, over the positives", "", verdicts),
    Bar("right, or the first thing beside it", "", with_runner_up),
    Bar("seconds to the first right verdict, steady causes", "", time_in_seconds),
    Bar("cost of watching", "", cost),
)
