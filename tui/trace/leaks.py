"""What a memory window says: what outlived it, by line; what grows in Python; what could be freed.

A block of the device counts as outliving where it is older than the last two steps: gradients and
whatever else is made anew each step are younger. What grows in Python is found by two looks.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ..verdict.code_origin import is_users

LEAST_BLOCKS: Final = 2
"""Of a line, to be called growing: one block is what was made once in the window."""
MOST_ROWS: Final = 12


class DeviceMemory(msgspec.Struct):
    """The allocator's blocks at the window's end, bytes."""

    reserved: int
    active: int
    before: int
    """Of blocks that were there before the window: their stacks are not known."""
    empty: int
    """Of segments without a block: `empty_cache` gives them back."""
    holey: int
    """Free between blocks: no `empty_cache` gives that back."""
    history_s: float | None
    """How far back the events reach that show when a block was made."""
    short: bool
    """They reach back less than two steps: what is made once a step may be among what is kept."""
    stacks: list[tuple[int, int, int, int, int, list[tuple[str, int, str]]]]
    """Bytes, blocks, bytes and blocks that have outlived two steps, free bytes in their segments,
    and (file, line, function), innermost first."""


class HostMemory(msgspec.Struct):
    """What Python's allocator and its garbage collector have more of, between the two looks."""

    steps: int
    lines: list[tuple[int, int, list[tuple[str, int]]]]
    """Bytes, blocks, (file, line) innermost first."""
    types: list[tuple[str, int, int]]
    """Type, objects, bytes of tensors on the CPU."""


class WorkersMemory(msgspec.Struct):
    """What Python has more of in DataLoader workers, between their two looks, all together."""

    asked: int
    """Workers that began to trace."""
    answered: int
    turns: int
    """Batches, or waits for one, of all of them."""
    rss_grew: int
    lines: list[tuple[int, int, int, list[tuple[str, int]]]]
    """Bytes, blocks, workers, (file, line) innermost first."""
    why_not: str = ""


class MemoryWindow(msgspec.Struct):
    """What the probe says of its window."""

    why_not: str = ""
    seconds: float = 0.0
    steps: int = 0
    rss_grew_bytes: int = 0
    cost_ns: int = 0
    device: DeviceMemory | None = None
    host: HostMemory | None = None
    workers: list[tuple[int, int]] = []
    """Processes that the run has started, by how much their own memory grew; the monitor's."""
    in_workers: WorkersMemory | None = None
    """None: they were not traced."""
    file: str = ""
    no_file: str = ""
    bytes: int = 0


WORKER_GROWS: Final = 1024 * 1024
"""A worker that holds one batch more or less by chance; a leak has more within seconds."""


def growing_workers(window: MemoryWindow) -> tuple[tuple[int, int], ...]:
    """(pid, bytes) of those that grow, the most first."""
    found = [one for one in window.workers if one[1] >= WORKER_GROWS]
    return tuple(sorted(found, key=lambda one: -one[1]))


@dataclass(frozen=True, slots=True)
class GrowingLine:
    """A line whose blocks outlive the window."""

    line: str
    """ "train.py:31 in step"."""
    bytes: int
    blocks: int
    a_step: float
    """Bytes."""
    through: tuple[str, ...]
    """The lines further in, innermost first: a library's."""
    in_holes: int = 0
    """Free bytes in the segments that its blocks keep from being given back."""


def device_lines(window: MemoryWindow) -> tuple[GrowingLine, ...]:
    """Lines of the user's own by the bytes that outlived two steps, the first first."""
    device = window.device
    if device is None:
        return ()
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    through: dict[str, tuple[str, ...]] = {}
    for _, _, old_bytes, old_blocks, holes, stack in device.stacks:
        if not old_bytes:
            continue
        line, inner = own_line([(name, file, number) for file, number, name in stack])
        row = sums[line]
        row[0] += old_bytes
        row[1] += old_blocks
        row[2] += holes
        through.setdefault(line, inner)
    found = (
        GrowingLine(line, row[0], row[1], row[0] / max(1, window.steps), through[line], row[2])
        for line, row in sums.items()
    )
    return tuple(sorted(found, key=lambda one: -one.bytes))[:MOST_ROWS]


def growing(lines: Sequence[GrowingLine]) -> tuple[GrowingLine, ...]:
    """Those of which there are several blocks."""
    return tuple(one for one in lines if one.blocks >= LEAST_BLOCKS)


def host_lines(window: MemoryWindow) -> tuple[GrowingLine, ...]:
    """Lines by the blocks that Python has more of, the most bytes first."""
    host = window.host
    return () if host is None else _growing_lines(host.lines, host.steps)


def worker_lines(window: MemoryWindow) -> tuple[GrowingLine, ...]:
    """As `host_lines`, in the workers; `a_step` is a batch."""
    found = window.in_workers
    if found is None:
        return ()
    lines = [(size, blocks, stack) for size, blocks, _, stack in found.lines]
    return _growing_lines(lines, found.turns)


def _growing_lines(
    rows: Sequence[tuple[int, int, list[tuple[str, int]]]], steps: int
) -> tuple[GrowingLine, ...]:
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    through: dict[str, tuple[str, ...]] = {}
    for size, blocks, stack in rows:
        line, inner = own_line([("", file, number) for file, number in stack])
        sums[line][0] += size
        sums[line][1] += blocks
        through.setdefault(line, inner)
    found = (
        GrowingLine(line, row[0], row[1], row[0] / max(1, steps), through[line])
        for line, row in sums.items()
        if row[1] >= LEAST_BLOCKS
    )
    return tuple(sorted(found, key=lambda one: -one.bytes))[:MOST_ROWS]


def own_line(stack: Sequence[tuple[str, str, int]]) -> tuple[str, tuple[str, ...]]:
    """The innermost line of the user's own, and those further in."""
    inner: list[str] = []
    for name, path, number in stack:
        file = path.rpartition("/")[2]
        words = f"{file}:{number} in {name}" if name else f"{file}:{number}"
        if _is_own(path):
            return words, tuple(inner)
        inner.append(words)
    return (inner[0] if inner else "no Python line"), tuple(inner[1:])


def _is_own(path: str) -> bool:
    """The probe's wrappers have a "#" in the names of their files."""
    short = path
    for mark in ("-packages/", "/lib/python", "#"):
        if mark in path:
            return False
    while short.startswith("/"):
        short = short[1:]
    return is_users(short.rpartition("/")[2]) and not path.startswith("<")
