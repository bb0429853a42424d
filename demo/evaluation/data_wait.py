"""The data-wait share that the probe reported, against that of the script's own clock."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gpuwatch.tui.steps import Step


@dataclass(frozen=True)
class DataWait:
    """Of the same steps, 0 to 1."""

    told: float
    true: float

    @property
    def error_points(self) -> float:
        """How far they are apart, percent of the time."""
        return 100 * abs(self.told - self.true)


def data_wait(
    steps: Sequence[Step], fetches: Iterable[Sequence[int]], after_step: int
) -> DataWait | None:
    """Over the steps after `after_step`; None where there is none.

    `fetches` are (begin, end) in perf_counter_ns, those inside others among them: what they cover
    counts once. Fetches of an evaluation are no wait of the training: steps with one are left out.
    """
    rows = [step for step in steps if step.number - step.count >= after_step]
    rows = [step for step in rows if not step.evaluation_ns]
    wall_ns = sum(step.end_ns - step.start_ns for step in rows)
    if not wall_ns:
        return None
    reported_ns = sum(step.data_ns + step.startup_ns for step in rows)
    covered = CoveredTime(fetches)
    true_ns = sum(covered.until(step.end_ns) - covered.until(step.start_ns) for step in rows)
    return DataWait(reported_ns / wall_ns, true_ns / wall_ns)


class CoveredTime:
    """Time that spans cover; where several do, it counts once."""

    def __init__(self, spans: Iterable[Sequence[int]]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted((span[0], span[1]) for span in spans):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._begins.append(begin)
                self._ends.append(end)
        lengths = (end - begin for begin, end in zip(self._begins, self._ends, strict=True))
        self._before = [0, *accumulate(lengths)]
        """What all spans before each cover."""

    def until(self, t_ns: int) -> int:
        """How much is covered before this moment, ns."""
        index = bisect_right(self._begins, t_ns)
        if not index:
            return 0
        return self._before[index] - max(0, self._ends[index - 1] - t_ns)
