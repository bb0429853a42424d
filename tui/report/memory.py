"""Memory of the host and of torch: how much, whether it grows, and when it is full."""

from typing import Final

from tui.report.lines import labelled
from tui.snapshot import MemoryView, Snapshot
from tui.verdict.memory_trend import MemoryTrend
from tui.wording import numbers
from tui.wording.gpu import allocator_words
from tui.wording.memory import full_words, interval_words, trend_words

WHOSE: Final = {"tensors": "tensors", "process": "the process", "workers": "the workers"}


def memory_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The host's, the allocator's, and every trend."""
    rows = _host(snapshot.memory, "steps" if snapshot.sampled is None else "s")
    if snapshot.gpu_memory:
        newest = snapshot.gpu_memory[-1]
        rows.append(f"torch's allocator: {' · '.join(allocator_words(newest))}   [hook]")
    rows += [_trend(trend) for trend in snapshot.trends]
    return labelled("memory", rows, width)


def _host(memory: MemoryView, unit: str) -> list[str]:
    if memory.host_rss_bytes is None:
        return []
    rss, held = numbers.size(memory.host_rss_bytes), memory.held_bytes
    own = rss if held is None else numbers.size(held)
    said = [f"process {own}" if own == rss else f"process {own} ({rss} RSS, with pages of files)"]
    if memory.workers_bytes is not None:
        said.append(f"workers {numbers.size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        total = numbers.size(memory.total_bytes)
        said.append(f"{numbers.size(memory.available_bytes)} of {total} available")
    if memory.slope_bytes_per_100_steps is not None:
        said.append(numbers.growth(memory.slope_bytes_per_100_steps))
    if memory.growing:
        said.append("growing")
    if len(memory.host) >= 2:
        said.append(f"over {numbers.count(memory.host[-1].step - memory.host[0].step)} {unit}")
    return [f"{' · '.join(said)}   [proc]"]


def _trend(trend: MemoryTrend) -> str:
    """ "the process ◆ grows +38 MiB (36 to 41) per 100 steps, over 193 steps · time to full 9h"."""
    glyph, word, _ = trend_words(trend)
    text = f"{WHOSE[trend.whose]} {glyph} {word} {interval_words(trend)} per 100 {trend.unit}, "
    text += f"over {numbers.count(trend.steps)} {trend.unit}"
    full = full_words(trend)
    return f"{text} · time to full {full}" if full else text
