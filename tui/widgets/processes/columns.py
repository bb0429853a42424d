"""Which columns the processes have: as many as fit, and none of which nothing is known."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tui.observations import ProcessUse

WIDE, ROOMY, HUGE = 80, 100, 136
"""Cells from which there are columns for the main thread and for reading and writing; for each of
these two and for threads; and for the time without a core."""

LONG_NAME = 22
"""Cells that a name gets where others are left out."""


class Columns(NamedTuple):
    """Cells of the columns at a width; 0: there is none."""

    name: int
    indent: int
    pid: int
    cpu: int
    thread: int
    memory: int
    moved: int
    """Read and written in one column, where there is no room for two."""
    read: int
    write: int
    threads: int
    delay: int

    @property
    def all(self) -> int:
        """Cells before the state, with the mark."""
        return 1 + sum(self) - self.indent


_WIDTHS: Final = (
    (HUGE, Columns(30, 2, 9, 8, 10, 16, 0, 14, 14, 9, 12)),
    (ROOMY, Columns(22, 2, 8, 6, 8, 13, 0, 11, 11, 5, 0)),
    (WIDE, Columns(21, 2, 7, 6, 7, 13, 12, 0, 0, 0, 0)),
    (0, Columns(12, 1, 6, 6, 0, 12, 0, 0, 0, 0, 0)),
)


def columns_for(width: int, processes: Sequence[ProcessUse]) -> Columns:
    """The fewer, the narrower: the state in words keeps its room. What no process tells (an older
    recording, a kernel without schedstat, somebody else's I/O) leaves its room to the names."""
    columns = next(columns for least, columns in _WIDTHS if width >= least)
    reads = any(one.read_bytes_s is not None for one in processes)
    writes = any(one.write_bytes_s is not None for one in processes)
    untold = {
        "thread": all(one.thread_cpu_percent is None for one in processes),
        "moved": not reads and not writes,
        "read": not reads,
        "write": not writes,
        "delay": all(one.run_delay_percent is None for one in processes),
    }
    cells = columns._asdict()
    freed = sum(cells[name] for name, absent in untold.items() if absent)
    left = columns._replace(**{name: 0 for name, absent in untold.items() if absent})
    return left._replace(name=max(columns.name, min(LONG_NAME, columns.name + freed)))
