"""What is allocated at one moment, summed up: the device's blocks by stack, Python's by line, its
objects by type. Summed up in the process: the monitor reads no pickle of another's."""

import sys
from collections import Counter
from typing import Any, Final

from ..all_objects import all_of, types_of_all
from ..circuit_breaker import PACKAGE, is_by_handler
from ..loaders import past_overrides, runs_no_code

MOST_STACKS: Final = 800
"""Of an answer, those with most bytes: with ten frames of 330 bytes 2.6 of a message's 4 MB."""
MOST_FRAMES: Final = 10
MOST_TEXT: Final = 160
MOST_LINES: Final = 400
MOST_TYPES: Final = 60

Lines = dict[tuple[tuple[str, int], ...], tuple[int, int]]
"""Bytes and blocks by stack, innermost line first."""
Types = dict[str, tuple[int, int]]
"""Objects and the bytes of their tensors on the CPU, by type."""


def device_answer(snapshot: Any, steps_us: list[int]) -> dict[str, Any]:
    """By stack: bytes and blocks that are there, those of them that have outlived two steps, and
    how many bytes of their segments are free. Ages by the entries that are left of the history."""
    born_us: dict[int, int] = {}
    oldest_us: int | None = None
    for trace in snapshot.get("device_traces", ()):
        for entry in trace:
            at_us = entry.get("time_us")
            if at_us is None:
                continue
            oldest_us = at_us if oldest_us is None else min(oldest_us, at_us)
            if entry.get("action") == "alloc":
                born_us[entry["addr"]] = at_us
    settled_us = steps_us[-3] if len(steps_us) >= 3 else None
    stacks: dict[tuple[Any, ...], list[int]] = {}
    reserved = active = unknown = empty = holey = 0
    for segment in snapshot.get("segments", ()):
        blocks = segment["blocks"]
        reserved += segment["total_size"]
        live = [block for block in blocks if block["state"] == "active_allocated"]
        free = segment["total_size"] - sum(block["size"] for block in live)
        active += segment["total_size"] - free
        if not live:
            empty += segment["total_size"]
            continue
        holey += free
        at = segment["address"]
        for block in blocks:
            address = block.get("address", at)
            at = address + block["size"]
            if block["state"] != "active_allocated":
                continue
            if not block.get("frames"):
                unknown += block["size"]
                continue
            born = born_us.get(address)
            old = settled_us is not None and (born is None or born < settled_us)
            row = stacks.setdefault(_stack_of(block["frames"]), [0, 0, 0, 0, 0])
            row[0] += block["size"]
            row[1] += 1
            if old:
                row[2] += block["size"]
                row[3] += 1
            row[4] += free // len(live)
    largest = sorted(stacks.items(), key=lambda one: -one[1][2])[:MOST_STACKS]
    return {
        "reserved": reserved,
        "active": active,
        "before": unknown,
        "empty": empty,
        "holey": holey,
        "history_s": None
        if oldest_us is None or not steps_us
        else max(0.0, (steps_us[-1] - oldest_us) / 1e6),
        "short": settled_us is None or oldest_us is None or oldest_us > settled_us,
        "stacks": [[*row, [list(frame) for frame in stack]] for stack, row in largest],
    }


def _stack_of(frames: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Innermost first: file, line, function."""
    return tuple(
        (str(one["filename"])[-MOST_TEXT:], int(one["line"]), str(one["name"])[:MOST_TEXT])
        for one in frames[:MOST_FRAMES]
    )


def lines_now() -> Lines:
    """As `tracemalloc.take_snapshot`, without its objects: tuples as C hands them out."""
    found: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for _, size, frames, *_ in _traces():
        place = tuple(frames)
        row = found.setdefault(place, [0, 0])
        row[0] += size
        row[1] += 1
    users = (place for place in found if not place[0][0].startswith(PACKAGE))
    return {place: (found[place][0], found[place][1]) for place in users}


def _traces() -> Any:
    private: Any = sys.modules["_tracemalloc"]
    return private._get_traces()


def types_now() -> Types:
    """Counting makes integers, which tracemalloc would trace one by one: 2 s and not 0.03 s. No
    code of a tensor's subclass runs for it: of one that even its size is asked of, no bytes."""
    torch: Any = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", ())
    types = types_of_all()
    kinds = dict(zip(map(id, types), types, strict=True))  # a metaclass may hash as it likes
    held: dict[type, int] = {}
    if isinstance(tensor, type):
        subclasses = (kind for kind in kinds.values() if issubclass(kind, tensor))
        held = {kind: 0 for kind in subclasses if runs_no_code(kind, torch)}
    if held:
        past_overrides(torch, lambda wanted: _add_host_bytes(all_of(wanted), wanted), held)
    names: Types = {}
    bytes_of = {id(kind): count for kind, count in held.items()}
    for place, count in Counter(map(id, types)).items():
        kind = kinds[place]
        name = f"{kind.__module__}.{kind.__qualname__}"
        before = names.get(name, (0, 0))
        names[name] = before[0] + count, before[1] + bytes_of.get(place, 0)
    return names


def _add_host_bytes(objects: list[Any], held: dict[type, int]) -> None:
    """To the types that are wanted."""
    seen: set[int] = set()
    for one in objects:
        held[type(one)] += _host_bytes(one, seen)


def _host_bytes(tensor: Any, seen: set[int]) -> int:
    """Of views of the same memory the first counts."""
    try:
        if tensor.device.type != "cpu":
            return 0
        place = tensor.data_ptr()
        if place in seen:
            return 0
        seen.add(place)
        return int(tensor.nelement() * tensor.element_size())
    except Exception as error:
        if is_by_handler(error):
            raise
        return 0  # one without memory of its own: sparse, fake, of a subclass


def host_answer(
    steps: int,
    lines: Lines,
    steps_by_now: int,
    grown_lines: Lines,
    types: Types,
    grown_types: Types,
) -> dict[str, Any]:
    """What has grown, most bytes first: lines between the two looks, types over the window."""
    grown: list[tuple[int, int, list[tuple[str, int]]]] = []
    for place, (size, count) in grown_lines.items():
        size_before, count_before = lines.get(place, (0, 0))
        if size > size_before:
            stack = [(file[-MOST_TEXT:], line) for file, line in place]
            grown.append((size - size_before, count - count_before, stack))
    grown.sort(key=lambda one: -one[0])
    more: list[tuple[str, int, int]] = []
    for name, (count, size) in grown_types.items():
        count_before, size_before = types.get(name, (0, 0))
        if count > count_before or size > size_before:
            more.append((name[:MOST_TEXT], count - count_before, size - size_before))
    more.sort(key=lambda one: (-one[2], -one[1]))
    return {"steps": steps_by_now - steps, "lines": grown[:MOST_LINES], "types": more[:MOST_TYPES]}
