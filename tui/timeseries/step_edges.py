"""Where the steps begin: a read-only view of arrays that only grow."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import overload


class StepEdges(Sequence[int]):
    """Moments in ns, oldest first: where each row of steps begins, and where the newest one ended,
    which is where the step that runs now began."""

    __slots__ = ("_after", "_end_ns", "_first", "_numbers", "_starts")

    def __init__(
        self, starts: "array[int]", numbers: "array[int]", end_ns: int, first: int, after: int
    ) -> None:
        self._starts = starts
        self._numbers = numbers
        self._end_ns = end_ns
        self._first = first
        self._after = after

    @classmethod
    def of(cls, edges_ns: Iterable[int], number: int = 1) -> "StepEdges":
        """Of these moments, the last of which ends a step; `number`: of the first step."""
        *starts, end_ns = edges_ns
        numbers = array("q", range(number, number + len(starts)))
        return cls(array("q", starts), numbers, end_ns, 0, len(starts))

    def __len__(self) -> int:
        steps = self._after - self._first
        return steps + 1 if steps else 0

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int, ...]: ...
    def __getitem__(self, at: int | slice) -> int | tuple[int, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at = self._first + at % len(self)
        return self._end_ns if at == self._after else self._starts[at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepEdges):
            return NotImplemented
        return tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def before(self, t_ns: int) -> int:
        """How many lie before a moment: the index of the first one that does not."""
        if not self:
            return 0
        at = bisect_left(self._starts, t_ns, self._first, self._after) - self._first
        return at + (at == len(self) - 1 and self._end_ns < t_ns)

    def number_at(self, t_ns: int) -> int | None:
        """The step that ran at a moment (of a row of several the last); of the step that runs now
        the number that it will have; None before the first."""
        if not self or t_ns < self._starts[self._first]:
            return None
        if t_ns >= self._end_ns:
            return self._numbers[self._after - 1] + 1
        return self._numbers[bisect_right(self._starts, t_ns, self._first, self._after) - 1]

    def mean_step_ns(self, start_ns: int, end_ns: int) -> float | None:
        """Mean length of the whole steps in a time range; None for fewer than two."""
        first, after = self.before(start_ns), self.before(end_ns)
        if after - first < 3:
            return None
        at = self._first + after - 1
        number = self._numbers[at] if at < self._after else self._numbers[at - 1] + 1
        return (self[after - 1] - self[first]) / max(1, number - self._numbers[self._first + first])


NO_STEPS = StepEdges(array("q"), array("q"), 0, 0, 0)
