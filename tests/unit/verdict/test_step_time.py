"""Sums over rows: each tuple has its own, however many are asked for."""

from gpuwatch.tui.verdict.step_time import spent
from tests.unit.verdict.windows import MS, step


def test_sums_are_those_of_the_rows_that_are_given() -> None:
    """They are worked out once for a tuple: another one may lie where that was."""
    for number in range(1, 50):
        rows = (step(number, 0, data_ms=number), step(number + 1, number * MS, forward_ms=2))
        for _ in range(2):
            total = spent(rows)
            assert (total.steps, total.data_ns) == (2, number * MS)
            assert total.wall_ns == total.attributed_ns == (number + 2) * MS
        assert spent(list(rows)) == total
