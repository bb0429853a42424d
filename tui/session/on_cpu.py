"""How much of a long stretch of work the training process was on a CPU, as the kernel counts it.

Between two marks nobody tells what the process does: it may compute, or sleep in a call that hangs.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from tui.observations import ProcessesSeen
from tui.session.computing import Span

HELD: Final = 3_600
"""Stretches: an hour of looks once a second of which no two were alike."""
LOOK_NS: Final = 900_000_000
"""Of a look that lies in the work by less than about itself most may speak of what was around."""


class OnCpu:
    """The main process over the last looks; neighbours that say the same are one stretch."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._stretches: list[Span] = []
        self._last_ns: int | None = None

    def seen(self, seen: ProcessesSeen) -> None:
        """Take a look, which speaks of the time since the last one."""
        since_ns, self._last_ns = self._last_ns, seen.t_ns
        told = [use.cpu_percent for use in seen.processes if use.role == "main"]
        if since_ns is None or not told or told[0] is None or since_ns >= seen.t_ns:
            return
        share = min(1.0, round(told[0]) / 100)
        if self._stretches and self._stretches[-1][1:] == (since_ns, share):
            since_ns = self._stretches[-1][0]
            self._ends[-1], self._stretches[-1] = seen.t_ns, (since_ns, seen.t_ns, share)
            return
        self._ends.append(seen.t_ns)
        self._stretches.append((since_ns, seen.t_ns, share))
        if len(self._ends) > HELD * 5 // 4:
            del self._ends[:-HELD], self._stretches[:-HELD]

    def told(self, spans: Iterable[Span]) -> Iterator[Span]:
        """The same spans, in which work takes the share that the kernel saw. Between looks it goes
        on as in the look before; work that is shorter than a look stays what it was."""
        for start_ns, end_ns, computes in spans:
            if not computes or end_ns - start_ns < LOOK_NS:
                yield start_ns, end_ns, computes
                continue
            parts = list(self._within(start_ns, end_ns)) or [(start_ns, end_ns, computes)]
            ends_ns = [part[0] for part in parts[1:]] + [end_ns]
            for (_, _, share), until_ns in zip(parts, ends_ns, strict=True):
                yield start_ns, until_ns, share
                start_ns = until_ns

    def _within(self, start_ns: int, end_ns: int) -> Iterator[Span]:
        for at in range(bisect_right(self._ends, start_ns), len(self._ends)):
            since_ns, until_ns, share = self._stretches[at]
            if since_ns >= end_ns:
                return
            since_ns, until_ns = max(since_ns, start_ns), min(until_ns, end_ns)
            if until_ns - since_ns >= LOOK_NS:
                yield since_ns, until_ns, share
