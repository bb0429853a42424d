"""Which steps the lens shows, and where in time."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tui.widgets.steps.lanes import Pair

COLUMNS_A_STEP: Final = 16
"""Enough for the parts of a step to be told apart."""
LEAST_STEPS: Final = 2
BLOCK_COLUMNS: Final = 8
"""Steps that take less are drawn several as one: no room for three phases and what is between."""
CALM_NS: Final = 1_000_000_000
SHORT_NS: Final = 250_000_000
"""Of steps shorter than this a picture stays for a second: nobody reads four a second."""


class Window(NamedTuple):
    """A stretch of time, and the step that it ends with."""

    from_ns: int
    column_ns: float
    last: Pair
    a_block: int
    """Steps that are drawn as one."""

    def column(self, t_ns: int) -> float:
        """Where a moment lies, in columns from the left."""
        return (t_ns - self.from_ns) / self.column_ns


def candidates(pairs: Sequence[Pair]) -> list[Pair]:
    """The steps that the lens can end with: those known on both clocks, else all."""
    return [pair for pair in pairs if pair.on_gpu is not None] or list(pairs)


def window_of(pairs: Sequence[Pair], last: Pair, columns: int) -> Window:
    """The time until a step has ended on both clocks, from the beginning of as many steps before it
    as fit, and at least from its own."""
    at = pairs.index(last)
    ends_ns = _ends_ns(last)
    length_ns = max(1, last.step.end_ns - last.step.start_ns)
    steps = columns // COLUMNS_A_STEP - (ends_ns - last.step.end_ns) // length_ns
    if last.on_gpu is not None:
        steps = min(steps, max(LEAST_STEPS, _measured_run(pairs, at)))
    shown = pairs[max(0, at + 1 - max(1, steps)) : at + 1]
    from_ns = shown[0].step.start_ns
    column_ns = max(1.0, (ends_ns - from_ns) / columns)
    return Window(from_ns, column_ns, last, _steps_a_block(shown, column_ns))


def _steps_a_block(pairs: Sequence[Pair], column_ns: float) -> int:
    """As many as take the columns that a block needs, by the middle one of them."""
    lengths = sorted(pair.step.end_ns - pair.step.start_ns for pair in pairs)
    middle_ns = max(1, lengths[len(lengths) // 2])
    return max(1, round(BLOCK_COLUMNS * column_ns / middle_ns))


def _measured_run(pairs: Sequence[Pair], at: int) -> int:
    """Steps in a row up to this one that the GPU's lane can show: where it is sampled, few."""
    first = at
    while first > 0 and pairs[first - 1].on_gpu is not None:
        first -= 1
    return at + 1 - first


def _ends_ns(pair: Pair) -> int:
    step, row = pair
    return step.end_ns if row is None else max(step.end_ns, row.gpu_end_ns)
