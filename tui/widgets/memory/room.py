"""Who holds it: a bar for each GPU and one for the machine."""

from collections.abc import Sequence

from tui.observations import GpuUse
from tui.snapshot import Snapshot
from tui.widgets.memory.holders import (
    Part,
    allocator_on,
    bar,
    device_parts,
    host_parts,
    legend,
    shown_gpu,
)
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, cell_len, clip, row, rule
from tui.widgets.view import View
from tui.wording.numbers import size

NAME = 6
"""Cells of "GPU 0", "host"."""


class MemoryRoomPanel(Panel):
    """The GPU that is shown with its parts named, the others as bars, and the machine."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, and two rows for each memory."""
        snapshot = view.snapshot
        head = rule("Who holds it", _sources(snapshot), width, self.has_focus)
        host = _two_rows("host", host_parts(snapshot.memory), width)
        room = height - 1 - len(host)
        return [head, *_gpus(snapshot, view.device, width, room), *host]


def _sources(snapshot: Snapshot) -> list[str]:
    told = ["hook"] if snapshot.gpu_memory else []
    return [*told, *(["nvml"] if snapshot.gpus else []), "proc"]


def _gpus(snapshot: Snapshot, device: int | None, width: int, room: int) -> list[Row]:
    gpu = shown_gpu(snapshot, device)
    if gpu is None:
        return [row(f" {clip(_why_none(snapshot), width - 2)}", "dim")]
    parts = device_parts(gpu, allocator_on(snapshot, gpu))
    out = _two_rows(f"GPU {gpu.index}", parts, width)
    others = [one for one in snapshot.gpus if one is not gpu]
    shown = others if len(out) + len(others) <= room else others[: max(0, room - len(out) - 1)]
    out += [_one_row(one, snapshot, width) for one in shown]
    if len(shown) < len(others) and len(out) < room:
        out.append(row(f" {'':{NAME}}and {len(others) - len(shown)} more GPUs", "dim"))
    return out


def _why_none(snapshot: Snapshot) -> str:
    told = (text for text in snapshot.status.missing if text.startswith("nvml"))
    return f"GPU    {next(told, 'none is used so far')}"


def _two_rows(name: str, parts: Sequence[Part], width: int) -> list[Row]:
    if not parts:
        return [row(f" {name:{NAME}}not measured yet", "dim")]
    total = f" of {size(sum(part.bytes for part in parts))} "
    cells = width - NAME - 1 - cell_len(total)
    return [
        (Span(f" {name:{NAME}}", "dim"), *bar(parts, cells), Span(total, "dim")),
        (Span(" " * (NAME + 1)), *legend(parts, width - NAME - 1)),
    ]


def _one_row(gpu: GpuUse, snapshot: Snapshot, width: int) -> Row:
    parts = device_parts(gpu, allocator_on(snapshot, gpu))
    total = f" {size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)} "
    cells = width - NAME - 1 - cell_len(total)
    return (Span(f" {f'GPU {gpu.index}':{NAME}}", "dim"), *bar(parts, cells), Span(total, "dim"))
