"""A memory window as lines of text and as one JSON object."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..trace.leaks import (
    GrowingLine,
    HostMemory,
    MemoryWindow,
    device_lines,
    growing,
    growing_workers,
    host_lines,
    worker_lines,
)
from ..verdict.format import ms, size
from ..wording.numbers import count
from .report_layout import head, labelled

LEAST_MIB: Final = 104_858
"""From a tenth of a MiB on."""
ROWS: Final = 8
TYPE_ROWS: Final = 8
LEAST_BYTES: Final = 1024 * 1024
"""Of free bytes beside blocks that are kept, to be worth a word."""
SLIGHT_A_STEP: Final = 51.2
"""Bytes below which a line is shown as "0.0 KiB a step": one object in two steps. A million steps
of it are 50 MB."""
SLIGHT_TYPE: Final = 0.1
"""Objects a step below which a type without tensors is chance: a leak keeps one a step or so."""
NO_SNAPSHOT: Final = "it would be of GPU memory, and the process uses none"
LEFT_OUT: Final = ("builtins.tuple", "gpuwatch.", "_gpuwatch.", "probe.")
"""Types: the last three are the probe's, what a window needs for itself."""


def memory_costs(for_s: float, host: bool | None) -> list[str]:
    """What a window costs, before it is opened. `host`: whether Python's memory is traced; None
    where that is known only once the process was asked."""
    lines = [
        f"gpuwatch: recording allocations for {for_s:.0f} s: some us each on the GPU, "
        "20 MB of host memory, and a pause at the end."
    ]
    if host is None or host:
        where = "Python's own memory is traced too"
        if host is None:
            where = "Of a process that uses no GPU Python's memory is traced"
        lines.append(
            f"{where}, also in DataLoader workers: Python code takes 2 to 4 times as long."
        )
    return lines


def memory_report_lines(
    script: str, pid: int, window: MemoryWindow, snapshot: str, width: int
) -> list[str]:
    """The report; `snapshot` is the file that was written, "" where none was."""
    seconds, steps = f"{window.seconds:.0f} s", f"{window.steps} steps"
    lines = head((f"memory of {script}", f"pid {pid}", seconds, steps), width)
    device = window.device
    if device is not None:
        lines += labelled("GPU", [_allocator(window)], width)
        lines += labelled("kept", _kept(window), width)
        lines += labelled("free", _free(window), width)
    if window.host is not None:
        rows = _growing_lines(host_lines(window), "a step")
        lines += labelled("Python", rows or ["no line grows"], width)
        lines += labelled("types", _types(window.host), width)
    else:
        lines += labelled("Python", ["not traced: --host does, and slows Python down"], width)
    lines += labelled("workers", _workers(window), width)
    lines += labelled("process", [f"resident memory grew by {size(window.rss_grew_bytes)}"], width)
    lines += labelled("window", [f"it held training up for {ms(window.cost_ns)} in all"], width)
    if snapshot:
        lines += labelled("file", [f"{snapshot}: pytorch.org/memory_viz opens it"], width)
    elif window.no_file:
        lines += labelled("file", [f"no snapshot: {window.no_file}"], width)
    return lines


def _allocator(window: MemoryWindow) -> str:
    device = window.device
    assert device is not None
    return (
        f"{size(device.active)} of blocks in {size(device.reserved)} of segments; "
        f"{size(device.before)} is older than the window"
    )


def _kept(window: MemoryWindow) -> list[str]:
    lines = device_lines(window)
    several = growing(lines)
    if not lines:
        return ["nothing that was allocated in the window outlived two steps"]
    rows = _lines(several)
    once = [one for one in lines if one not in several]
    rows += [f"{size(one.bytes)} once, in {one.line}" for one in once[: ROWS - len(rows)]]
    if window.device is not None and window.device.short:
        rows.append("the history reaches back less than two steps: gradients may be among these")
    total = sum(one.bytes for one in several)
    if total:
        rows.append(f"without these {size(total)} would be free")
    return rows


def _workers(window: MemoryWindow) -> list[str]:
    """What grows in them by line, and by process."""
    traced = window.in_workers
    rows = _growing_lines(worker_lines(window), "a batch")
    grown = growing_workers(window)[:TYPE_ROWS]
    if traced is not None and traced.answered and grown and not rows:
        rows.append("no line of Python's grows in them: what does is allocated in C or C++")
    why = _why_no_line(window)
    rows += [f"process {child} grew by {size(grew)}{why}" for child, grew in grown]
    return rows


def _why_no_line(window: MemoryWindow) -> str:
    traced = window.in_workers
    if window.host is None:
        return ": --host shows the line"
    if traced is not None and traced.answered:
        return ""
    if traced is not None and traced.why_not:
        return f", not traced: {traced.why_not}"
    if traced is not None and traced.asked:
        return ", not traced: workers ended before the window did"
    return ", not traced: it is no forked worker of a DataLoader; num_workers=0 shows the line"


def _growing_lines(lines: Sequence[GrowingLine], each: str) -> list[str]:
    """Those that matter; the others as their sum."""
    slight = [one for one in lines if one.a_step < SLIGHT_A_STEP and one.bytes < LEAST_MIB]
    rows = [_line(one, each) for one in lines if one not in slight][:ROWS]
    if slight:
        kept = _small(sum(one.bytes for one in slight))
        several = "one line" if len(slight) == 1 else f"{len(slight)} lines"
        rows.append(f"{'else ' if rows else ''}no leak: {kept} in {several}, <0.1 KiB {each}")
    return rows


def _types(host: HostMemory) -> list[str]:
    """Those of the run's own that there are more of. Not tuples: the collector lets go of
    those without references only when it comes across them, so their number is chance."""
    return [
        f"{name}: {count(objects)} more" + (f", tensors of {size(held)}" if held else "")
        for name, objects, held in host.types
        if (held > 0 or objects >= max(1.0, SLIGHT_TYPE * host.steps))
        and not name.startswith(LEFT_OUT)
    ][:TYPE_ROWS]


def _lines(lines: tuple[GrowingLine, ...]) -> list[str]:
    return [_line(one) for one in lines[:ROWS]]


def _line(one: GrowingLine, each: str = "a step") -> str:
    kept = f"{_small(one.bytes)} in {count(one.blocks)} blocks, {_small(one.a_step)} {each}"
    through = f" (through {one.through[0]})" if one.through else ""
    return f"{kept}   {one.line}{through}"


def _small(value: float) -> str:
    return size(value) if value >= LEAST_MIB else f"{value / 1024:.1f} KiB"


def _free(window: MemoryWindow) -> list[str]:
    device = window.device
    assert device is not None
    rows = [f"{size(device.empty)} in segments without a block: torch.cuda.empty_cache() frees it"]
    if device.holey >= LEAST_BYTES:
        rows.append(f"{size(device.holey)} between blocks, which empty_cache() cannot free")
        held = sorted(device_lines(window), key=lambda one: -one.in_holes)
        rows += [
            f"{size(one.in_holes)} of it beside blocks of {one.line}"
            for one in held[:3]
            if one.in_holes >= LEAST_BYTES
        ]
    return rows


def memory_json(script: str, pid: int, window: MemoryWindow, snapshot: str) -> str:
    """One object; bytes throughout. docs/json.md has the fields."""
    device, host, workers = window.device, window.host, window.in_workers
    made: dict[str, Any] = {
        "schema": "gpuwatch-memory-1",
        "script": script,
        "pid": pid,
        "seconds": window.seconds,
        "steps": window.steps,
        "rss_grew_bytes": window.rss_grew_bytes,
        "cost_ns": window.cost_ns,
        "workers": [{"pid": child, "grew_bytes": grew} for child, grew in window.workers],
        "in_workers": None
        if workers is None
        else {
            "asked": workers.asked,
            "answered": workers.answered,
            "batches": workers.turns,
            "rss_grew_bytes": workers.rss_grew,
            "lines": msgspec.to_builtins(worker_lines(window)),
            "why_not": workers.why_not or None,
        },
        "device": None
        if device is None
        else {
            "reserved_bytes": device.reserved,
            "active_bytes": device.active,
            "before_bytes": device.before,
            "empty_bytes": device.empty,
            "between_blocks_bytes": device.holey,
            "kept": msgspec.to_builtins(device_lines(window)),
        },
        "host": None
        if host is None
        else {
            "steps": host.steps,
            "lines": msgspec.to_builtins(host_lines(window)),
            "types": [
                {"type": name, "objects": objects, "tensor_bytes": held}
                for name, objects, held in host.types
            ],
        },
        "snapshot": snapshot or None,
    }
    return msgspec.json.encode(made).decode()
