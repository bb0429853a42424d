"""Who holds how much of a memory, as parts of one bar."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...model.observations import GpuUse
from ...model.snapshot import MemoryView, Snapshot
from ...steps import GpuMemory
from ...verdict.findings import find_missing
from ...wording.numbers import size
from ..panel import Panel, View
from ..text import Row, Span, cell_len, clip, row, rule


@dataclass(frozen=True, slots=True)
class Part:
    """One holder."""

    name: str
    bytes: int
    glyph: str
    role: str


def shown_gpu(snapshot: Snapshot, device: int | None) -> GpuUse | None:
    """The GPU that a person chose, else the fullest; None without any."""
    chosen = [gpu for gpu in snapshot.gpus if gpu.index == device]
    fullest = sorted(snapshot.gpus, key=lambda gpu: -gpu.memory_used_bytes)
    return next(iter((*chosen, *fullest)), None)


def allocator_on(snapshot: Snapshot, gpu: GpuUse | None) -> GpuMemory | None:
    """The allocator's newest reading on a GPU, or, where NVML lists none, on any. torch numbers
    the devices that a process may see; of a process on one GPU that is the only one."""
    gpus = snapshot.gpus
    for reading in reversed(snapshot.gpu_memory):
        if gpu is None or len(gpus) == 1:
            return reading
        if reading.device < len(gpus) and gpus[reading.device].index == gpu.index:
            return reading
    return None


def device_parts(gpu: GpuUse, allocator: GpuMemory | None) -> list[Part]:
    """Of a device's memory: what tensors are in, what the allocator keeps for later, what the
    process has beside it, what others hold, what the driver keeps, and what is free."""
    used, own = gpu.memory_used_bytes, gpu.target_memory_bytes
    parts: list[Part] = []
    held = 0
    if allocator is not None:
        held = allocator.reserved
        cached = max(0, held - allocator.allocated)
        parts.append(Part("allocated", allocator.allocated, "█", "area"))
        parts.append(Part("cached", cached, "▓", "backward"))
    if own is None:
        parts.append(
            Part("context, others" if held else "in use", max(0, used - held), "░", "startup")
        )
    else:
        beside = "context" if held else "this process"
        parts.append(Part(beside, max(0, own - held), "▒" if held else "█", "area"))
        rest = max(0, used - max(own, held))
        others = min(rest, sum(other.memory_bytes or 0 for other in gpu.others))
        unknown = any(other.memory_bytes is None for other in gpu.others)
        parts.append(Part("others", rest if unknown else others, "░", "startup"))
        parts.append(Part("driver", 0 if unknown else rest - others, "┄", "dim"))
    parts.append(Part("free", max(0, gpu.memory_total_bytes - used), "·", "dim"))
    return parts


def host_parts(memory: MemoryView) -> list[Part]:
    """Of the machine's memory; none until it is known."""
    total, free = memory.total_bytes, memory.available_bytes
    if total is None or free is None or memory.held_bytes is None:
        return []
    parts = [Part("process", memory.held_bytes, "█", "area")]
    if memory.workers_bytes is not None:
        parts.append(Part("workers", memory.workers_bytes, "▓", "backward"))
    rest = max(0, total - free - sum(part.bytes for part in parts))
    return [
        *parts,
        Part("other", rest, "░", "startup"),
        Part("available", free, "·", "dim"),
    ]


def cells_of(parts: Sequence[Part], width: int) -> list[int]:
    """Cells of each part in a bar: they add up to the width, and a part that is there has one."""
    whole = sum(part.bytes for part in parts)
    if whole <= 0 or width < len(parts):
        return [0] * len(parts)
    exact = [part.bytes * width / whole for part in parts]
    cells = [max(1, int(one)) if part.bytes else 0 for one, part in zip(exact, parts, strict=True)]
    while sum(cells) != width:
        by = 1 if sum(cells) < width else -1
        off = [by * (one - cell) for one, cell in zip(exact, cells, strict=True)]
        fit = [i for i, cell in enumerate(cells) if by > 0 or cell > 1]
        cells[max(fit, key=lambda i: off[i])] += by
    return cells


def bar(parts: Sequence[Part], width: int) -> Row:
    """The parts beside each other."""
    return tuple(
        Span(part.glyph * cells, part.role)
        for part, cells in zip(parts, cells_of(parts, width), strict=True)
        if cells
    )


def legend(parts: Sequence[Part], width: int) -> Row:
    """ "█ allocated 61.2 GiB  ▓ cached 7.7 GiB…": what holds nothing has no word. Where there is no
    room they lose their numbers, the last but one first; then it leaves, and the last at last."""
    shown = [part for part in parts if part.bytes]
    numbered = {part.name for part in shown}
    for part in shown[-2:0:-1]:
        if _cells(shown, numbered) > width:
            numbered.discard(part.name)
    while len(shown) > 1 and _cells(shown, numbered) > width:
        shown.pop(-2 if len(shown) > 2 else -1)
    out: list[Span] = []
    for part in shown:
        gap = "  " if out else ""
        out += (Span(f"{gap}{part.glyph} ", part.role), Span(part.name, "dim"))
        out += [Span(f" {size(part.bytes)}")] if part.name in numbered else []
    return tuple(out)


def _cells(parts: Sequence[Part], numbered: Collection[str]) -> int:
    numbers = sum(len(size(part.bytes)) + 1 for part in parts if part.name in numbered)
    return sum(len(part.name) + 4 for part in parts) + numbers - 2


# Who holds it: a bar for each GPU and one for the machine.

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
    numbered = ["hook"] if snapshot.gpu_memory else []
    return [*numbered, *(["nvml"] if snapshot.gpus else []), "proc"]


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
    missing = find_missing(snapshot.status.missing, "nvml")
    return f"GPU    {missing.text if missing else 'none is used so far'}"


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
