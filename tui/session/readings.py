"""The readings of what the GPUs did over the last hour: the newest as they came, older ones merged.

Nobody looks back further than some seconds but the verdict on slow steps, whose window of 100 may
be an hour long. Means over that time need no single readings; 36,000 of them, of which each is ten
figures of every GPU, took 20 MB a GPU.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from tui.observations import Activity, ActivitySeen

SINGLE: Final = 1_500
"""Two and a half minutes at ten readings a second; some 550 bytes each."""
MERGED_OF: Final = 10
HELD: Final = 36_000
"""An hour of them, single and merged."""


class Readings:
    """In time order."""

    def __init__(self) -> None:
        self._newest: deque[ActivitySeen] = deque()
        self._older: deque[ActivitySeen] = deque(maxlen=(HELD - SINGLE) // MERGED_OF)

    def __len__(self) -> int:
        return len(self._older) + len(self._newest)

    def add(self, seen: ActivitySeen) -> None:
        """One more, later than all others."""
        self._newest.append(seen)
        if len(self._newest) >= SINGLE + MERGED_OF:
            self._older.append(merged([self._newest.popleft() for _ in range(MERGED_OF)]))

    def last(self, count: int) -> list[ActivitySeen]:
        """The newest of the single ones, oldest first."""
        held = len(self._newest)
        return [self._newest[at] for at in range(max(0, held - count), held)]

    def after(self, t_ns: int) -> Iterator[ActivitySeen]:
        """Those that end after a moment, newest first."""
        for seen in chain(reversed(self._newest), reversed(self._older)):
            if seen.t_ns <= t_ns:
                return
            yield seen


def merged(readings: Sequence[ActivitySeen]) -> ActivitySeen:
    """Several as one, of each GPU the mean."""
    return ActivitySeen(t_ns=readings[-1].t_ns, gpus=means(readings))


def means(readings: Sequence[ActivitySeen]) -> tuple[Activity, ...]:
    """Of each GPU over all of them."""
    rows: dict[int, list[Activity]] = {}
    for seen in readings:
        for gpu in seen.gpus:
            rows.setdefault(gpu.index, []).append(gpu)
    return tuple(together(rows[index]) for index in sorted(rows))


def together(rows: Sequence[Activity]) -> Activity:
    """Means weighted by the readings' lengths, over all of them; the first names them."""
    return Activity(
        index=rows[0].index,
        source=rows[0].source,
        interval_ns=sum(row.interval_ns for row in rows),
        busy=_weighted(rows, lambda row: row.busy),
        sm=_weighted(rows, lambda row: row.sm),
        occupancy=_weighted(rows, lambda row: row.occupancy),
        tensor=_weighted(rows, lambda row: row.tensor),
        fp32=_weighted(rows, lambda row: row.fp32),
        dram=_weighted(rows, lambda row: row.dram),
        pcie_rx_mb_s=_weighted(rows, lambda row: row.pcie_rx_mb_s),
        pcie_tx_mb_s=_weighted(rows, lambda row: row.pcie_tx_mb_s),
        nvlink_rx_mb_s=_weighted(rows, lambda row: row.nvlink_rx_mb_s),
        nvlink_tx_mb_s=_weighted(rows, lambda row: row.nvlink_tx_mb_s),
    )


def _weighted(rows: Sequence[Activity], of: Callable[[Activity], float | None]) -> float | None:
    total, weight = 0.0, 0
    for row in rows:
        if (value := of(row)) is not None:
            total += value * row.interval_ns
            weight += row.interval_ns
    return total / weight if weight else None
