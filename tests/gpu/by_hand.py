"""A window's trace read a second time, by other means: the device's time on a grid of 0.5 us.

It shares no code with `tui.trace` but the trace's file: what it comes to is what that is held to.
"""

import json
import re
from typing import Any, Final

GRID_US: Final = 0.5
FETCH_ENTER, FETCH_LEAVE, FETCH_END, FETCH_FAILED = 2, 3, 4, 5


def by_hand(
    data: bytes, ends_ns: list[int], marks: list[tuple[int, int]], anchor: tuple[int, int]
) -> dict[str, float] | None:
    """ms a step: step, compute, collectives, copies to the device alone, idle, and the part of the
    idle time in which the host was in a fetch and had not asked for more. None without work."""
    trace = json.loads(data)
    base_us = (trace.get("baseTimeNanoseconds", 0) - anchor[1] + anchor[0]) / 1e3
    events: list[dict[str, Any]] = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    asked = {
        one["args"]["correlation"]: one["ts"]
        for one in events
        if one.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in one["args"]
    }
    work: list[tuple[float, float, float, str]] = []
    for one in events:
        if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            kind = "compute"
            if one["name"].startswith("nccl"):
                kind = "collective"
            elif one["cat"] == "gpu_memcpy":
                kind = "upload" if "HtoD" in one["name"] else "copy"
            start = float(one["ts"])
            call = float(asked.get(one["args"].get("correlation"), start))
            work.append((call + base_us, start + base_us, start + one["dur"] + base_us, kind))
    edges: list[float] = []
    for end_ns in ends_ns[1:]:
        done = [end for call, _, end, _ in work if call < end_ns / 1e3]
        if done and (not edges or max(done) > edges[-1]):
            edges.append(max(done))
    if len(edges) < 2:
        return None
    first, last = edges[0], edges[-1]
    cells = round((last - first) / GRID_US)
    grid = bytearray(cells)
    order = {"copy": 1, "upload": 2, "collective": 3, "compute": 4}
    for rank_kind in ("copy", "upload", "collective", "compute"):
        for _, start, end, kind in work:
            if kind == rank_kind:
                low = max(0, round((start - first) / GRID_US))
                high = min(cells, round((end - first) / GRID_US))
                if high > low:
                    grid[low:high] = bytes([order[kind]]) * (high - low)
    starts = sorted((start, call) for call, start, _, _ in work)
    in_fetch = bytearray(cells)
    entered: float | None = None
    for t_ns, kind_number in marks:
        if kind_number == FETCH_ENTER:
            entered = t_ns / 1e3
        elif kind_number in (FETCH_LEAVE, FETCH_END, FETCH_FAILED) and entered is not None:
            low = max(0, round((entered - first) / GRID_US))
            high = min(cells, round((t_ns / 1e3 - first) / GRID_US))
            if high > low:
                in_fetch[low:high] = b"\1" * (high - low)
            entered = None
    waits = bytearray(cells)
    index = 0
    for gap in re.finditer(rb"\0+", grid):
        begin, at = gap.span()
        ended_us = first + at * GRID_US
        while index < len(starts) and starts[index][0] < ended_us - GRID_US:
            index += 1
        call = starts[index][1] if index < len(starts) else ended_us
        until = min(at, max(begin, round((call - first) / GRID_US)))
        if until > begin:
            waits[begin:until] = b"\1" * (until - begin)
    steps = len(ends_ns) - 2
    scale = GRID_US / 1e3 / steps
    both = (int.from_bytes(in_fetch, "big") & int.from_bytes(waits, "big")).bit_count()
    return {
        "step_ms": cells * scale,
        "compute_ms": grid.count(4) * scale,
        "collectives_ms": grid.count(3) * scale,
        "uploads_ms": grid.count(2) * scale,
        "copies_ms": grid.count(1) * scale,
        "idle_ms": grid.count(0) * scale,
        "input_ms": both * scale,
    }
