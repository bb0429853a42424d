"""Host memory: how much now, whether it grows, and the trend as a small picture."""

from collections.abc import Sequence

from tui.snapshot import MemoryView, Snapshot
from tui.verdict.window import MemoryPoint
from tui.widgets.columns import Column, area_rows
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, cell_len, ends, length, row, rule
from tui.widgets.view import View
from tui.wording.gpu import allocator_words, memory_words
from tui.wording.numbers import count, growth, scale_size, size

LEAST_SPAN = 0.10
LEAST_SPAN_GROWING = 0.02
"""The trend's scale spans at least this part of the value: noise must not look like growth."""
TREND_NS = 30 * 10**9
"""No trend over this long is an answer; over less it is not known yet."""
LABEL = 10
"""Cells of a label of the trend's scale."""


class MemoryPanel(Panel):
    """One line where there is little room; else a heading, the slope, and a trend."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Memory of the training process and its workers."""
        memory = view.snapshot.memory
        if memory.host_rss_bytes is None:
            waiting = "not measured yet"
            if height == 1:
                return [row(f" memory: {waiting}", "dim")]
            return [rule("Memory", (), width, self.has_focus), row(f"   {waiting}", "dim")]
        if height == 1:
            return [_one_line(memory, width)]
        out = [rule("Memory", _notes(view.snapshot), width, self.has_focus)]
        if height == 2:
            return [*out, _slope_and_trend(memory, width)]
        if height == 3:
            return [*out, *_beside(memory, width)]
        steps = (Span(f"over {count(_steps_seen(memory.host))} steps ", "dim"),)
        lines = [ends(_slope(memory), steps, width), *_gpus(view.snapshot)]
        room = height - len(out) - len(lines)
        return [*out, *lines, *_trend(memory, width - 1, min(room, 12))]


def _notes(snapshot: Snapshot) -> list[str]:
    memory = snapshot.memory
    notes = [f"process {size(memory.host_rss_bytes or 0)}"]
    if memory.workers_bytes:
        notes.append(f"workers {size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes:
        notes.append(f"{size(memory.available_bytes)} of {size(memory.total_bytes)} free")
    if snapshot.gpus:
        notes.append("GPU " + _gpu_use(snapshot))
    return notes


def _gpu_use(snapshot: Snapshot) -> str:
    used = sum(g.memory_used_bytes for g in snapshot.gpus)
    total = sum(g.memory_total_bytes for g in snapshot.gpus)
    return f"{size(used)} of {size(total)}"


def _gpus(snapshot: Snapshot) -> list[Row]:
    return [
        row(f"   GPU {gpu.index}  {' · '.join(memory_words(gpu))}", "dim")
        for gpu in snapshot.gpus[:4]
    ] + [
        row(f"   torch  {' · '.join(allocator_words(newest))}", "dim")
        for newest in snapshot.gpu_memory[-1:]
    ]


def _slope(memory: MemoryView) -> Row:
    slope = memory.slope_bytes_per_100_steps
    if memory.growing and slope is not None:
        return (Span(" ▲ ", "warning"), Span(f"growing {growth(slope)}", "strong"))
    if slope is not None:
        return (Span(" ● ", "info"), Span(f"rising {growth(slope)}"))
    if len(memory.host) >= 2 and memory.host[-1].t_ns - memory.host[0].t_ns >= TREND_NS:
        return (Span(" ● ", "good"), Span("steady "))
    return (Span(" ○ no trend yet", "dim"),)


def _one_line(memory: MemoryView, width: int) -> Row:
    left: Row = (Span(" memory ", "dim"), Span(size(memory.host_rss_bytes or 0), "strong"))
    right = (*_slope(memory), Span(" "))
    if memory.workers_bytes:
        workers = Span(f" + workers {size(memory.workers_bytes)}", "dim")
        if length((*left, workers, *right)) < width:
            left = (*left, workers)
    return ends(left, right, width, gap=1)


def _slope_and_trend(memory: MemoryView, width: int) -> Row:
    """One row: the words, then the trend between its first and its last value."""
    words = _slope(memory)
    room = width - sum(cell_len(s.text) for s in words) - 2 * LABEL - 4
    if room < 12 or len(memory.host) < 2:
        return words
    points = [point.bytes for point in memory.host]
    text = _area(memory, room, 1)[0]
    low, high = _scale(memory)
    first, last = (scale_size(point, high - low) for point in (points[0], points[-1]))
    return (
        *words,
        Span(f"{first:>{LABEL + 2}} ", "dim"),
        Span(text, "area"),
        Span(f" {last}", "dim"),
    )


def _beside(memory: MemoryView, width: int) -> list[Row]:
    """Two rows: the trend on its scale, with the words at its right."""
    words = (*_slope(memory), Span(" "))
    steps = f"   over {count(_steps_seen(memory.host))} steps "
    side = max(sum(cell_len(s.text) for s in words), len(steps)) + 2
    trend = _trend(memory, width - side, 2)
    if not trend:
        return [words]
    return [ends(trend[0], words, width), ends(trend[1], (Span(steps, "dim"),), width)]


def _steps_seen(points: Sequence[MemoryPoint]) -> int:
    return points[-1].step - points[0].step if points else 0


def _trend(memory: MemoryView, width: int, height: int) -> list[Row]:
    """The trend with the ends of its scale at the left."""
    room = width - LABEL - 1
    if len(memory.host) < 2 or height < 1 or room < 12:
        return []
    low, high = _scale(memory)
    body = _area(memory, room, height)
    labels = [" " * LABEL] * height
    labels[0] = f"{scale_size(high, high - low):>{LABEL}}"
    if height > 1:
        labels[-1] = f"{scale_size(low, high - low):>{LABEL}}"
    return [
        (Span(f"{label}┤", "dim"), Span(text, "area"))
        for label, text in zip(labels, body, strict=True)
    ]


def _scale(memory: MemoryView) -> tuple[float, float]:
    low = min(point.bytes for point in memory.host)
    high = max(point.bytes for point in memory.host)
    least = LEAST_SPAN_GROWING if memory.growing else LEAST_SPAN
    return float(low), max(float(high), low * (1 + least), low + 1.0)


def _area(memory: MemoryView, width: int, height: int) -> list[str]:
    """Spread over the width by time; a column holds the last value known by then."""
    low, high = _scale(memory)
    points = memory.host
    first, last = points[0].t_ns, points[-1].t_ns
    columns: list[Column | None] = []
    at = 0
    for x in range(width):
        t_ns = first + (last - first) * (x + 1) // width
        while at + 1 < len(points) and points[at + 1].t_ns <= t_ns:
            at += 1
        value = float(points[at].bytes)
        columns.append(Column(value, value))
    return area_rows(columns, height, low, high)
