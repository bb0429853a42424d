"""The file for Perfetto and chrome://tracing: kineto's own events, and rows of ours beside them.

Both recordings lie on one time axis, so the slower steps with operators stand before those that
count. Ours is a process "gpuwatch" with the steps on the host and on the GPU, and every stretch in
which the GPU was idle, by its cause.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgspec

from .events import ACTIVITIES, read_trace
from .gaps import Gap, device_edges, partition
from .profile import LONGEST_GAPS, Recorded, Window, fetches_of, looked_at

PROCESS: Final = "gpuwatch"
HOST_STEPS: Final = 1
GPU_STEPS: Final = 2
GPU_IDLE: Final = 3
ROWS: Final = {
    HOST_STEPS: "steps, on the host",
    GPU_STEPS: "steps, on the GPU",
    GPU_IDLE: "GPU idle, by cause",
}
"""Threads of our process."""
CATEGORY: Final = "gpuwatch"
FAR: Final = 10_000_000


def file_of(window: Window) -> bytes:
    """Raises ValueError for a recording that is no trace."""
    times = _parsed(window.times)
    rows = [*_names(), *_steps(window.times, times, ""), *_on_gpu(window, times)]
    events = times["traceEvents"]
    operators = None if window.operators is None else _parsed(window.operators)
    if window.operators is not None and operators is not None and _belong(operators, times):
        _move_out_of_the_way(events, operators["traceEvents"])
        rows.extend(_steps(window.operators, operators, ", with operators"))
        events = [*operators["traceEvents"], *events]
    events = _without_loose_arrows(events)
    times["traceEvents"] = [*events, *_rows_for_overlaps(events), *rows]
    times.pop("traceName", None)  # a file that is removed
    return msgspec.json.encode(times)


def _parsed(recorded: Recorded) -> dict[str, Any]:
    found = msgspec.json.decode(recorded.data)
    if not isinstance(found, dict) or not isinstance(found.get("traceEvents"), list):
        raise ValueError("a recording is no trace")
    found["traceEvents"] = [one for one in found["traceEvents"] if isinstance(one, dict)]
    return found


def _belong(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """To one time axis."""
    return first.get("baseTimeNanoseconds") == second.get("baseTimeNanoseconds")


def _move_out_of_the_way(events: list[Any], others: list[Any]) -> None:
    """Correlations and flows of a recording count from 1: behind the highest of the other's."""
    highest = 0
    for event in others:
        highest = max(highest, _int(event.get("id")), _int(event.get("args"), "correlation"))
    for event in events:
        if isinstance(event.get("id"), int):
            event["id"] += highest + 1
        args = event.get("args")
        if isinstance(args, dict) and isinstance(args.get("correlation"), int):
            args["correlation"] += highest + 1


def _int(value: Any, key: str = "") -> int:
    if key:
        value = value.get(key) if isinstance(value, dict) else 0
    return value if isinstance(value, int) else 0


def _without_loose_arrows(events: list[Any]) -> list[Any]:
    """Kineto ends an arrow at every call of the runtime, also of those that launch nothing: at each
    of these chrome://tracing warns."""
    begun = {(one.get("cat"), one.get("id")) for one in events if one.get("ph") == "s"}
    return [
        one for one in events if one.get("ph") != "f" or (one.get("cat"), one.get("id")) in begun
    ]


def _rows_for_overlaps(events: list[Any]) -> Iterator[dict[str, Any]]:
    """Names of the rows that are needed besides kineto's.

    On Hopper a kernel of a stream may begin some 100 ns before the one before it ends (cuBLAS's
    split-K products do, by programmatic dependent launch), and Perfetto drops what overlaps on one
    row. So each such activity goes to a row beside its stream's, with the arrow that leads to it.
    """
    by_row: defaultdict[tuple[Any, Any], list[Any]] = defaultdict(list)
    arrows: defaultdict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for event in events:
        row = event.get("pid"), event.get("tid")
        if event.get("ph") == "X" and event.get("cat") in ACTIVITIES:
            by_row[row].append(event)
        elif event.get("ph") == "f":
            arrows[row, event.get("id")].append(event)
    for (pid, tid), activities in by_row.items():
        ends_ns: list[int] = []
        for event in sorted(activities, key=lambda one: _ns(one, "ts")):
            start_ns = _ns(event, "ts")
            free = (lane for lane, end_ns in enumerate(ends_ns) if end_ns <= start_ns)
            lane = next(free, len(ends_ns))
            ends_ns[lane : lane + 1] = [start_ns + _ns(event, "dur")]
            if lane:
                moved = [event, *arrows[(pid, tid), _int(event.get("args"), "correlation")]]
                for one in moved:
                    one["tid"] = _row_beside(tid, lane)
        for lane in range(1, len(ends_ns)):
            where = {"ph": "M", "pid": pid, "tid": _row_beside(tid, lane)}
            yield {**where, "name": "thread_name", "args": {"name": f"stream {tid}, overlapping"}}
            yield {**where, "name": "thread_sort_index", "args": {"sort_index": _int(tid)}}


def _ns(event: dict[str, Any], key: str) -> int:
    us = event.get(key)
    return round(us * 1_000) if isinstance(us, (int, float)) else 0


def _row_beside(tid: Any, lane: int) -> int:
    """Streams have small numbers, threads' are below 2^22."""
    return _int(tid) + lane * FAR


def _names() -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": PROCESS, "args": {"name": PROCESS}}
    yield {"ph": "M", "name": "process_sort_index", "pid": PROCESS, "args": {"sort_index": -1}}
    for row, name in ROWS.items():
        where = {"ph": "M", "pid": PROCESS, "tid": row}
        yield {**where, "name": "thread_name", "args": {"name": name}}
        yield {**where, "name": "thread_sort_index", "args": {"sort_index": row}}


@dataclass(frozen=True, slots=True)
class _Clock:
    """From perf_counter_ns to the file's time."""

    ahead_ns: int

    def slice(self, row: int, name: str, start_ns: int, end_ns: int, **args: Any) -> dict[str, Any]:
        """A complete event, times in us."""
        return {
            "ph": "X",
            "cat": CATEGORY,
            "name": name,
            "pid": PROCESS,
            "tid": row,
            "ts": (start_ns + self.ahead_ns) / 1e3,
            "dur": (end_ns - start_ns) / 1e3,
            "args": args,
        }


def _clock_of(recorded: Recorded, parsed: dict[str, Any]) -> _Clock:
    base_ns = _int(parsed.get("baseTimeNanoseconds"))
    return _Clock(recorded.anchor[1] - recorded.anchor[0] - base_ns)


def _steps(recorded: Recorded, parsed: dict[str, Any], how: str) -> Iterator[dict[str, Any]]:
    """Of a recording the first step is not counted: CUPTI and caches settle in it."""
    clock = _clock_of(recorded, parsed)
    for number, (start_ns, end_ns) in enumerate(pairwise(recorded.ends_ns)):
        name = f"step {number}{how}" if number else f"not counted{how}"
        yield clock.slice(HOST_STEPS, name, start_ns, end_ns)


def _on_gpu(window: Window, parsed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    times = window.times
    clock = _clock_of(times, parsed)
    trace = read_trace(times.data, times.anchor)
    found = partition(trace, times.ends_ns, fetches_of(times.marks))
    edges = device_edges(trace, times.ends_ns)
    if found is None or edges is None:
        return
    for number, (start_ns, end_ns) in enumerate(pairwise(edges), 1):
        yield clock.slice(GPU_STEPS, f"step {number}", start_ns, end_ns)
    looks = looked_at(window)
    longest = sorted(found.gaps, key=lambda gap: gap.start_ns - gap.end_ns)[:LONGEST_GAPS]
    lines = {id(gap): looks.of_gap(gap) for gap in longest}
    for gap in found.gaps:
        yield _idle(clock, gap, lines.get(id(gap), ""))


def _idle(clock: _Clock, gap: Gap, line: str) -> dict[str, Any]:
    about: dict[str, Any] = {f"{cause} us": ns / 1e3 for cause, ns in gap.parts}
    if line:
        about["line"] = line
    return clock.slice(GPU_IDLE, gap.cause, gap.start_ns, gap.end_ns, until=gap.behind, **about)
