"""Watches the memories of a run: growth must show three times in a row to be reported."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ..steps import GpuMemory
from .findings import Finding
from .memory.trends import (
    MemoryPlace,
    MemoryTrend,
    Whose,
    exhaustion,
    line_of,
    of_tensors,
    of_the_process,
    of_workers,
    trend,
)
from .rules.memory_growth import fragmentation, memory_growth
from .thresholds.memory import MEMORY_RETEST_SHARE, MEMORY_RETEST_STEPS, MEMORY_TIMES
from .window import MemoryPoint, Window

REPORT_ORDER: Final = ("leak", "fragmentation", "growth")

_Series = Sequence[GpuMemory] | Sequence[MemoryPoint]
_PlaceOf = Callable[[Window], MemoryPlace]


class MemoryWatch:
    """One run's. No clock: it goes by the steps."""

    def __init__(self) -> None:
        self._tensors, self._process = _Growing("tensors"), _Growing("process")
        self._workers = _Growing("workers")
        self._pieces = _Pieces()

    def update(self, window: Window) -> tuple[Finding, ...]:
        """All present findings, the worst first; at a tie the device's before the host's."""
        found = [self._pieces.update(window)]
        found.append(self._tensors.update(window.gpu_memory, of_tensors, window))
        found.append(self._process.update(window.memory, of_the_process, window))
        found.append(self._workers.update(window.worker_memory, of_workers, window))
        held = [finding for finding in found if finding is not None]
        return tuple(sorted(held, key=lambda finding: REPORT_ORDER.index(finding.sub or "growth")))

    @property
    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow, as of their last tests."""
        each = (self._tensors, self._process, self._workers)
        return tuple(one.trend for one in each if one.trend is not None)


class _Held:
    """Enters and leaves on the third test in a row."""

    def __init__(self) -> None:
        self.holds = False
        self._against = 0

    def update(self, seen: bool) -> None:
        """One more test."""
        self._against = self._against + 1 if seen != self.holds else 0
        if self._against >= MEMORY_TIMES:
            self.holds, self._against = seen, 0


class _Growing:
    """Growth of one memory."""

    def __init__(self, whose: Whose) -> None:
        self._whose = whose
        self.trend: MemoryTrend | None = None
        self._entered = _Held()
        self._tested_step = -1
        self._floor_bytes = 0
        """Where the present growth began."""
        self._leak = False
        """Once confirmed it stays one while it grows and nothing was given back."""
        self._finding: Finding | None = None

    def update(self, series: _Series, place_of: _PlaceOf, window: Window) -> Finding | None:
        """The finding after this window; the memory's place is worked out when a test is due."""
        if not series or not _is_due(series[0].step, series[-1].step, self._tested_step, window):
            return self._finding
        is_first, self._tested_step = self._tested_step < 0, series[-1].step
        place = place_of(window)
        if is_first and place.points:
            self._catch_up(place, window)
        grown = trend(place, window.moments)
        self._entered.update(grown is not None)
        if grown is None and place.points and place.points[-1].bytes < self._floor_bytes:
            self._entered = _Held()  # all of it was given back
        if not self._entered.holds:
            self._leak, self._finding, self._floor_bytes = False, None, 0
        elif grown is not None:
            self._floor_bytes = grown.blocks.lows[0].bytes
            self._leak = not grown.gives_back and (self._leak or grown.leak)
            self._finding = memory_growth(place, grown, self._leak, window)
        if not self._entered.holds:
            self.trend = None  # one test that fails ends neither the finding nor its trend
        if grown is not None:
            first, last = line_of(grown)
            left = exhaustion(place, grown, window)
            self.trend = MemoryTrend(
                self._whose, grown.slope, first, last, left, self._finding, window.memory_unit
            )
        return self._finding

    def _catch_up(self, place: MemoryPlace, window: Window) -> None:
        """What is known at the first look already, of a recording that begins later than its run,
        is tested as it was when it came."""
        points = place.points
        for ago in range(MEMORY_TIMES - 1, 0, -1):
            until = points[-1].step - ago * _waits(points[-1].step - points[0].step)
            known = bisect_right(points, until, key=lambda point: point.step)
            earlier = replace(place, points=points[:known])
            self._entered.update(trend(earlier, window.moments) is not None)


class _Pieces:
    """Fragmentation of the device's memory."""

    def __init__(self) -> None:
        self._entered = _Held()
        self._tested_step = -1
        self._finding: Finding | None = None

    def update(self, window: Window) -> Finding | None:
        """The finding after this window."""
        series = window.gpu_memory
        if series and _is_due(series[0].step, series[-1].step, self._tested_step, window):
            self._tested_step = series[-1].step
            found = fragmentation(window)
            self._entered.update(found is not None)
            if not self._entered.holds:
                self._finding = None
            elif found is not None:
                self._finding = found
        return self._finding


def _is_due(first: int, last: int, tested: int, window: Window) -> bool:
    """Between steps: every 25; sooner while few are known, so that long steps get a word early."""
    if last <= window.warm_step:
        return False
    if last < tested:
        return True
    return last - tested >= _waits(last - max(window.warm_step, first))


def _waits(known: int) -> int:
    return max(1, min(MEMORY_RETEST_STEPS, known // MEMORY_RETEST_SHARE))
