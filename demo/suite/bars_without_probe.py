"""What is asked of a run that nobody put the probe into: NVML and py-spy alone see it."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from suite.bars import (
    Bar,
    Figure,
    cost,
    false_alarms,
    part_right,
    time_in_seconds,
    verdicts,
    with_runner_up,
)
from suite.figures import Scored, positives

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
    """Causes that nothing from outside can tell for sure."""
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
