"""Processes: the launcher, the ranks, the workers and other children, as the kernel sees them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...model.observations import ProcessUse
from ...model.snapshot import Snapshot
from ...wording.numbers import digits, size, span
from ...wording.processes import cores_used, cores_words, state_of
from ..charts.columns import area_rows
from ..charts.levels import known_columns, times_of
from ..footer import bindings
from ..panel import FilteredPanel, Panel, View
from ..text import Row, Span, clip, first_seen, row, rule
from .tree import ORDERS, Line, Order, held_bytes, matching, tree_of

# Which columns the processes have: as many as fit, and none of which nothing is known.

WIDE, ROOMY, HUGE = 80, 100, 136
"""Cells from which there are columns for the main thread and for reading and writing; for each of
these two and for threads; and for the time without a core."""

LONG_NAME = 22
"""Cells that a name gets where others are left out."""


class ProcessColumns(NamedTuple):
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
    (HUGE, ProcessColumns(30, 2, 9, 8, 10, 16, 0, 14, 14, 9, 12)),
    (ROOMY, ProcessColumns(22, 2, 8, 6, 8, 13, 0, 11, 11, 5, 0)),
    (WIDE, ProcessColumns(21, 2, 7, 6, 7, 13, 12, 0, 0, 0, 0)),
    (0, ProcessColumns(12, 1, 6, 6, 0, 12, 0, 0, 0, 0, 0)),
)


def columns_for(width: int, processes: Sequence[ProcessUse]) -> ProcessColumns:
    """The fewer, the narrower: the state in words keeps its room. What no process reports (an older
    recording, a kernel without schedstat, somebody else's I/O) leaves its room to the names."""
    columns = next(columns for least, columns in _WIDTHS if width >= least)
    reads = any(one.read_bytes_s is not None for one in processes)
    writes = any(one.write_bytes_s is not None for one in processes)
    unknown = {
        "thread": all(one.thread_cpu_percent is None for one in processes),
        "moved": not reads and not writes,
        "read": not reads,
        "write": not writes,
        "delay": all(one.run_delay_percent is None for one in processes),
    }
    cells = columns._asdict()
    freed = sum(cells[name] for name, absent in unknown.items() if absent)
    left = columns._replace(**{name: 0 for name, absent in unknown.items() if absent})
    return left._replace(name=max(columns.name, min(LONG_NAME, columns.name + freed)))


# Cores that the training uses over time, of those that it may use.

LABEL: Final = 5
NAME: Final = "cores"
"""Of the series."""


class CoresPanel(Panel):
    """The target, its workers and its other children together."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading and area, from none to all of them."""
        snapshot = view.snapshot
        series = next((one for one in snapshot.series if one.name == NAME), None)
        if series is None or not snapshot.cores:
            head = rule("Cores used", (), width, self.has_focus)
            return [head, row("   not measured yet", "dim")]
        times = times_of(view, [series], max(1, width - LABEL - 2))
        back = f"last {span((times[-1].end_ns - times[0].start_ns) / 1e9)}"
        source = f"{series.source} {span(series.interval_ns / 1e9)}"
        head = rule("Cores used", (back, source), width, self.has_focus)
        columns = known_columns(series, times)
        most = max([snapshot.cores, *(column.peak for column in columns if column is not None)])
        body = area_rows(columns, max(1, height - 1), 0.0, most)
        labels = [" " * LABEL] * len(body)
        labels[0] = f"{most:>{LABEL}.0f}"
        if len(body) > 1:
            labels[-1] = f"{0:>{LABEL}}"
        return [
            head,
            *(
                (Span(f"{label}┤", "dim"), Span(text, "area"))
                for label, text in zip(labels, body, strict=True)
            ),
        ]


LEAST_TOTALS: Final = 5
"""Rows of the panel from which the last one adds up."""


class ProcessesPanel(FilteredPanel):
    """The tree with a line for each; one of them may be chosen, so that it stays in sight."""

    KIND = "processes"
    BINDINGS = bindings("processes")

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._order: Order = "pid"
        self._chosen = 0
        self._first = 0
        self._count = 0

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, names of the columns, the lines that fit, and what they add up to."""
        snapshot = view.snapshot
        if not snapshot.processes:
            head = rule("Processes", (), width, self.has_focus)
            return [head, row("   not measured yet", "dim")]
        lines = matching(tree_of(snapshot, self._order), self.words)
        cells = columns_for(width, [line.use for line in lines if line.use is not None])
        totals = [_totals(snapshot, cells)] if height >= LEAST_TOTALS else []
        room = max(1, height - 2 - len(totals))
        self._count = len(lines)
        self._chosen = max(0, min(self._chosen, self._count - 1))
        self._first = first_seen(self._chosen, self._first, self._count, room)
        seen = lines[self._first : self._first + room]
        notes = [self.filter_note, _position(self._first, len(seen), self._count)]
        head = rule("Processes", (*notes, *cores_words(snapshot)), width, self.has_focus)
        body = [
            line_row(line, cells, width, self.has_focus and self._first + i == self._chosen)
            for i, line in enumerate(seen)
        ]
        if not seen:
            body = [row("   none of that name", "dim")]
        return [head, _header(cells, self._order), *body, *totals]

    def action_sort(self) -> None:
        """The next order."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._redraw()

    def action_choose(self, by: int) -> None:
        """Another line."""
        self._chosen = max(0, min(self._chosen + by, self._count - 1))
        self._redraw()


def _position(first: int, seen: int, count: int) -> str:
    """ "3-14 of 70" where not all are seen."""
    return f"{first + 1}-{first + seen} of {count}" if seen < count else ""


def _header(cells: ProcessColumns, order: Order) -> Row:
    """Names of the columns; the one that the lines are sorted by has an arrow."""
    arrow = {order: "↓"}
    text = f" {'':{cells.name}}{'pid':>{cells.pid}}"
    text += f"{arrow.get('cpu', '') + 'cpu':>{cells.cpu}}"
    text += _cell("thread", cells.thread)
    text += f"{arrow.get('memory', '') + 'memory':>{cells.memory}}"
    text += _cell(arrow.get("io", "") + "r/w MiB/s", cells.moved)
    text += _cell(arrow.get("io", "") + "read", cells.read) + _cell("write", cells.write)
    text += _cell("thr", cells.threads) + _cell("no core", cells.delay)
    return row(f"{text}  state", "dim")


def line_row(line: Line, cells: ProcessColumns, width: int, chosen: bool = False) -> Row:
    """A process, or a thread with its CPU alone."""
    indent = " " * (cells.indent * line.depth)
    name = f"{clip(indent + line.name, cells.name - 1):<{cells.name}}"
    lead = Span("▸" if chosen else " ", "focus")
    use = line.use
    cpu = f"{_percent(line.cpu_percent):>{cells.cpu}}"
    if use is None:
        return (lead, Span(name, "dim"), Span(f"{'':>{cells.pid}}{cpu}", "dim"))
    numbers = f"{use.pid:>{cells.pid}}{cpu}" + _cell(_percent(use.thread_cpu_percent), cells.thread)
    numbers += f"{_memory(use):>{cells.memory}}"
    numbers += _cell(_moved(use.read_bytes_s, use.write_bytes_s), cells.moved)
    numbers += _cell(_rate(use.read_bytes_s), cells.read)
    numbers += _cell(_rate(use.write_bytes_s), cells.write) + _cell(f"{use.threads}", cells.threads)
    numbers += _cell(_percent(use.run_delay_percent), cells.delay)
    words, role = state_of(use, with_delay=not cells.delay)
    return (
        lead,
        Span(name, "strong" if use.role == "main" or chosen else "text"),
        Span(numbers),
        Span(f"  {clip(words, max(1, width - cells.all - 2))}", role),
    )


def _totals(snapshot: Snapshot, cells: ProcessColumns) -> Row:
    """Of the target and all below it. Sums of resident sizes count what is shared many times."""
    own = snapshot.processes
    used = cores_used(own)
    bound = "≤ " if len(own) > 1 and any(use.pss_bytes is None for use in own) else ""
    memory = f"{bound}{size(sum(held_bytes(use) for use in own))}"
    text = f" {f'{len(own)} in all':{cells.name}}{'':>{cells.pid}}"
    text += f"{'' if used is None else _percent(100 * used):>{cells.cpu}}"
    text += _cell("", cells.thread) + f"{memory:>{cells.memory}}"
    read, written = (
        _sum([use.read_bytes_s for use in own]),
        _sum([use.write_bytes_s for use in own]),
    )
    text += _cell(_moved(read, written), cells.moved)
    text += _cell(_rate(read), cells.read) + _cell(_rate(written), cells.write)
    text += _cell(f"{sum(use.threads for use in own)}", cells.threads)
    return row(text, "dim")


def _cell(text: str, cells: int) -> str:
    return f"{text:>{cells}}" if cells else ""


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}%"


def _memory(use: ProcessUse) -> str:
    return f"{size(held_bytes(use))} {'RSS' if use.pss_bytes is None else 'PSS'}"


def _rate(value: float | None) -> str:
    return "" if value is None else f"{digits(value / 1024**2)} MiB/s" if value else "0"


def _moved(read: float | None, written: float | None) -> str:
    """ "12.3/0.41", in MiB/s; "-" for what is not reported."""
    if read is None and written is None:
        return ""
    return "/".join(
        "-" if value is None else digits(value / 1024**2) if value else "0"
        for value in (read, written)
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
