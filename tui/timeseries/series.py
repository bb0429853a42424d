"""A quantity over time, and where steps begin: read-only views of arrays that only grow.

A view costs the same at any length and never changes: the writer (`timeseries.writer`) appends
behind its end, or continues in new arrays.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload


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


COARSE = 8
"""A roll-up is coarse enough for a column of so many of its points, and no finer one is needed."""


class Point(NamedTuple):
    """The interval that ends at `t_ns`."""

    t_ns: int
    mean: float
    low: float
    high: float


class Summary(NamedTuple):
    """What was measured in a time range."""

    known_ns: float
    """How much of it was measured."""
    mean: float
    """By time, of what was measured."""
    low: float
    high: float
    points: int
    """Whole points that gave the lowest and the highest; 0: the range lies within one."""


class Rows:
    """The arrays behind a level, in time order. Only `tui.timeseries.writer` appends to them."""

    __slots__ = ("ends", "highs", "known", "lows", "sampled", "total")

    def __init__(self, sampled: bool) -> None:
        self.sampled = sampled
        """A row is one sample: its lowest is its highest, and they share an array."""
        self.ends = array("q")
        self.known = array("q", [0])
        """ns that were measured before each row, and at the end in all."""
        self.total = array("d", [0.0])
        """The same of value times ns: a mean over any rows is one subtraction."""
        self.lows = array("d")
        self.highs = self.lows if sampled else array("d")

    def append(self, end_ns: int, known_ns: int, area: float, low: float, high: float) -> None:
        """One more row: `known_ns` were measured, `area` is value times ns over them."""
        self.known.append(self.known[-1] + known_ns)
        self.total.append(self.total[-1] + area)
        self.lows.append(low)
        if not self.sampled:
            self.highs.append(high)
        self.ends.append(end_ns)

    def newest(self, count: int) -> "Rows":
        """A copy of the last rows, to go on in."""
        rows = Rows(self.sampled)
        rows.ends = self.ends[-count:]
        rows.known = self.known[-count - 1 :]
        rows.total = self.total[-count - 1 :]
        rows.lows = self.lows[-count:]
        rows.highs = rows.lows if self.sampled else self.highs[-count:]
        return rows


class Level(Sequence[Point]):
    """Points at one spacing, oldest first."""

    __slots__ = ("_after", "_first", "_rows", "interval_ns")

    def __init__(self, rows: Rows, interval_ns: int, first: int, after: int) -> None:
        self._rows = rows
        self._first = first
        self._after = after
        self.interval_ns = interval_ns
        """What a point covers; one that was rolled up, or taken late, may know less of it."""

    def __len__(self) -> int:
        return self._after - self._first

    @overload
    def __getitem__(self, at: int) -> Point: ...
    @overload
    def __getitem__(self, at: slice) -> "Level": ...
    def __getitem__(self, at: int | slice) -> "Point | Level":
        if isinstance(at, slice):
            first, after, step = at.indices(len(self))
            if step != 1:
                raise ValueError("a level is cut into ranges, not thinned out")
            base = self._first
            return Level(self._rows, self.interval_ns, base + first, base + max(first, after))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._point((self._after if at < 0 else self._first) + at)

    def __iter__(self) -> Iterator[Point]:
        return map(self._point, range(self._first, self._after))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        return self.interval_ns == other.interval_ns and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def start_ns(self) -> int:
        """Where the oldest point begins; of none 0."""
        return self._begin(self._first) if self else 0

    @property
    def end_ns(self) -> int:
        """Where the newest point ends; of none 0."""
        return self._rows.ends[self._after - 1] if self else 0

    @property
    def whole(self) -> bool:
        """Nothing that came before it was dropped."""
        return self._rows.known[self._first] == 0

    def over(self, start_ns: int, end_ns: int) -> Summary | None:
        """What was measured in a time range; None where nothing was.

        A point that lies in it in part counts by that part. The lowest and the highest are of the
        points whose middle is in the range, so that no two ranges show the same spike.
        """
        rows = self._rows
        first = bisect_right(rows.ends, start_ns, self._first, self._after)
        after = bisect_left(rows.ends, end_ns, first, self._after)
        known = float(rows.known[after] - rows.known[first])
        area = rows.total[after] - rows.total[first]
        lowest, highest = first, after
        if first < after and (begin := self._begin(first)) < start_ns:
            part = (start_ns - begin) / (rows.ends[first] - begin)
            known -= part * (rows.known[first + 1] - rows.known[first])
            area -= part * (rows.total[first + 1] - rows.total[first])
            lowest += begin + rows.ends[first] < 2 * start_ns
        if after < self._after and (begin := self._begin(after)) < end_ns:
            part = (end_ns - max(begin, start_ns)) / (rows.ends[after] - begin)
            known += part * (rows.known[after + 1] - rows.known[after])
            area += part * (rows.total[after + 1] - rows.total[after])
            highest += 2 * start_ns <= begin + rows.ends[after] < 2 * end_ns
        if known <= 0:
            return None
        mean = area / known
        if lowest >= highest:
            return Summary(known, mean, mean, mean, 0)
        low, high = min(rows.lows[lowest:highest]), max(rows.highs[lowest:highest])
        return Summary(known, mean, min(low, mean), max(high, mean), highest - lowest)

    def share_above(self, limit: float, start_ns: int, end_ns: int) -> float | None:
        """Part of the measured time, 0 to 1, in which samples that end in a time range were at
        least so high; None without any."""
        rows = self._rows
        first = bisect_right(rows.ends, start_ns, self._first, self._after)
        after = bisect_right(rows.ends, end_ns, first, self._after)
        known = rows.known[first : after + 1]
        if first == after:
            return None
        above = sum(
            until - since
            for value, since, until in zip(rows.highs[first:after], known, known[1:], strict=False)
            if value >= limit
        )
        return above / (known[-1] - known[0])

    def _begin(self, at: int) -> int:
        rows = self._rows
        if rows.sampled:
            return rows.ends[at] - (rows.known[at + 1] - rows.known[at])
        return rows.ends[at] - self.interval_ns

    def _point(self, at: int) -> Point:
        rows = self._rows
        low, high = rows.lows[at], rows.highs[at]
        known = rows.known[at + 1] - rows.known[at]
        mean = low if rows.sampled else (rows.total[at + 1] - rows.total[at]) / known
        return Point(rows.ends[at], mean, low, high)


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over the last hour."""

    name: str
    """"sm", "tensor", "power": its key."""
    title: str
    unit: str
    """"%", "MB/s", "W", "MHz", "°C", "bytes"."""
    source: str
    """"gpm", "nvml", "hook"."""
    device: int | None
    """NVML's index of the GPU; None of all of them, or of none."""
    levels: tuple[Level, ...]
    """Finest first: as sampled, then rolled up. The finer ones hold a shorter time and reach
    nearer to now."""
    running: Level | None = None
    """What comes after them and may still change: shown now and not kept."""

    @property
    def interval_ns(self) -> int:
        """How far apart the samples are."""
        return self.levels[0].interval_ns

    @property
    def end_ns(self) -> int:
        """The moment of the newest sample; 0 before the first."""
        return (self.running or self.levels[0]).end_ns

    @property
    def start_ns(self) -> int:
        """Since when something is known; 0 before the first sample."""
        return next(one for one in self.levels if one.whole or one is self.levels[-1]).start_ns

    def level_for(self, column_ns: int, since_ns: int | None = None) -> Level:
        """What columns of this length are drawn from, for a picture that goes back to `since_ns`:
        never finer than needed, nor so short that the older part would be missing."""
        coarse_enough = [one for one in self.levels if COARSE * one.interval_ns <= column_ns]
        chosen = coarse_enough[-1] if coarse_enough else self.levels[0]
        if since_ns is None:
            return chosen
        at = self.levels.index(chosen)
        far = (one for one in self.levels[at:] if one.whole or one.start_ns <= since_ns)
        return next(far, self.levels[-1])

    def over(self, start_ns: int, end_ns: int, level: Level) -> Summary | None:
        """What was measured in a time range, at a level; the newest part, which is not rolled up
        yet, at the finer ones."""
        at = next(i for i, one in enumerate(self.levels) if one is level)
        summary: Summary | None = None
        for one in self.levels[at::-1]:
            if one and start_ns < one.end_ns:
                summary = _together(summary, one.over(start_ns, min(end_ns, one.end_ns)))
                start_ns = one.end_ns
        if self.running and start_ns < end_ns:
            summary = _together(summary, self.running.over(start_ns, end_ns))
        return summary


def _together(one: Summary | None, other: Summary | None) -> Summary | None:
    if one is None or other is None:
        return one or other
    known = one.known_ns + other.known_ns
    return Summary(
        known,
        (one.mean * one.known_ns + other.mean * other.known_ns) / known,
        min(one.low, other.low),
        max(one.high, other.high),
        one.points + other.points,
    )
