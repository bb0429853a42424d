"""A window's recordings as what a person wants to know: where a step's time goes, and why."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from ...probe.wire import marks
from ..verdict.code_origin import is_users
from .events import Trace, read_trace
from .gaps import Cause, Gap, Partition, partition
from .kernels import Asked, KernelSum, asked_by, sort_of, summed
from .spans import Span

Pattern = Literal["launch", "input", "copies", "sync", "communication", "host", "allocator"]
LONGEST_GAPS: Final = 8
MOST_ALIKE: Final = 8
"""Gaps like one of the longest that are asked for a look."""
FUSES_FROM: Final = 3
"""Elementwise kernels in a row: two or more launches less, and as many passes over memory."""

Frame = tuple[str, str, int]
"""Function, file from its outermost package on, line."""
OUR_OWN: Final = re.compile(r"(^|/)probe/(deep/|hooks/|recorder\.py)")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording as the probe described it."""

    data: bytes
    ends_ns: tuple[int, ...]
    marks: tuple[tuple[int, int], ...]
    anchor: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """All that came of one window."""

    times: Recorded
    operators: Recorded | None
    looks: tuple[tuple[int, int], ...]
    """(perf_counter_ns, index of the place), taken while operators were recorded."""
    places: tuple[tuple[Frame, ...], ...]
    """Innermost first."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """One of the patterns."""

    pattern: Pattern
    ns_a_step: float
    share: float
    """Of the steps' time on the device, 0 to 1."""
    lines: tuple[tuple[str, float], ...]
    """ "train.py:31 in step", and its part of the looks in this pattern's gaps; empty where there
    was none."""
    about: str
    """What it consists of: "1,240 kernels, gaps of 8 us in the middle"."""


@dataclass(frozen=True, slots=True)
class LongGap:
    """One of the longest."""

    ns: int
    step: int
    cause: Cause
    line: str
    """Most looked at in one like it; "" where there was no look."""
    behind: str
    """The activity that ended it."""


@dataclass(frozen=True, slots=True)
class Fusable:
    """Elementwise kernels that stand in a row."""

    kernels_a_step: float
    ns_a_step: float
    rows_a_step: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What the window says."""

    device: str
    steps: int
    step_ns: float
    """Of a step on the device's time, while the profiler recorded."""
    compute_ns_a_step: float
    patterns: tuple[PatternPart, ...]
    """Largest first, those that are there."""
    device_ns_a_step: float
    """Between activities of a queue, and copies that are none of the patterns."""
    kernels: tuple[KernelSum, ...]
    kernels_a_step: float
    gaps: tuple[LongGap, ...]
    fp32_products_ns_a_step: float
    fusable: Fusable
    graph_share: float
    """Of the kernels, those that a CUDA graph launched."""
    stream_waits_a_step: float
    """Calls that have one stream wait for another."""

    def share_of(self, pattern: Pattern) -> float:
        """0 where it is not there."""
        return next((one.share for one in self.patterns if one.pattern == pattern), 0.0)


class NothingRecordedError(ValueError):
    """The recording has no activity of a device in two steps."""


def profile_of(window: Window) -> Profile:
    """Raises ValueError for a trace that is malformed, NothingRecordedError for an empty one."""
    trace = read_trace(window.times.data, window.times.anchor)
    found = partition(trace, window.times.ends_ns, fetches_of(window.times.marks))
    if found is None:
        raise NothingRecordedError("the recording has no work of a GPU in two whole steps")
    steps = len(window.times.ends_ns) - 2
    span_ns = found.end_ns - found.start_ns
    inside = [one for one in trace.activities if found.start_ns < one.end_ns <= found.end_ns]
    asked, seen = _named(window.operators)
    kernels = summed(inside, asked, steps)
    looks = Looked(window, seen)
    total = sum(1 for one in inside if one.what == "kernel")
    in_graphs = sum(1 for one in inside if "GraphLaunch" in one.call)
    return Profile(
        device=trace.device,
        steps=steps,
        step_ns=span_ns / steps,
        compute_ns_a_step=found.compute_ns / steps,
        patterns=_patterns(found, trace, looks, steps),
        device_ns_a_step=(found.idle_ns("device") + found.other_copies_ns) / steps,
        kernels=kernels,
        kernels_a_step=total / steps,
        gaps=_longest(found.gaps, looks),
        fp32_products_ns_a_step=sum(
            one.ns_a_step
            for one in kernels
            if one.sort in ("matrix product", "convolution") and one.dtype == "fp32"
        ),
        fusable=_fusable(trace, found, asked, steps),
        graph_share=in_graphs / max(1, total),
        stream_waits_a_step=_stream_waits(trace, window.times.ends_ns) / steps,
    )


def _stream_waits(trace: Trace, ends_ns: Sequence[int]) -> int:
    """In the steps that count, by the host's clock."""
    inside = range(ends_ns[1], ends_ns[-1])
    return sum("StreamWaitEvent" in one.name and one.start_ns in inside for one in trace.calls)


def fetches_of(recorded: Sequence[tuple[int, int]]) -> list[Span]:
    """Where the training thread was in a fetch."""
    found: list[Span] = []
    entered: int | None = None
    for t_ns, kind in recorded:
        if kind in (marks.FETCH_ENTER, marks.ITERATION):
            entered = t_ns if entered is None else entered
        elif kind in (marks.FETCH_LEAVE, marks.FETCH_END, marks.FETCH_FAILED):
            if entered is not None:
                found.append((entered, t_ns))
            entered = None
    return found


def _named(
    recorded: Recorded | None,
) -> tuple[Mapping[tuple[str, int], Asked], Partition | None]:
    """What asked for each kernel, by the last of the steps with operators; and those steps' gaps,
    which are longer than the others', but have the same causes, and were looked at."""
    if recorded is None or len(recorded.ends_ns) < 3:
        return {}, None
    trace = read_trace(recorded.data, recorded.anchor)
    since_ns, until_ns = recorded.ends_ns[-2:]
    last = tuple(one for one in trace.activities if since_ns <= one.asked_ns < until_ns)
    asked = asked_by(Trace(last, trace.calls, trace.operators, trace.device))
    return asked, partition(trace, recorded.ends_ns, fetches_of(recorded.marks))


def looked_at(window: Window) -> "Looked":
    """Raises ValueError for a trace that is malformed."""
    return Looked(window, _named(window.operators)[1])


class Looked:
    """Where the training thread was while the device did nothing, and while it was waited for."""

    def __init__(self, window: Window, seen: Partition | None) -> None:
        self._looks = window.looks
        self._lines = [line_of(place) for place in window.places]
        self._gaps = () if seen is None else seen.gaps

    def of_pattern(self, pattern: Pattern) -> tuple[tuple[str, float], ...]:
        """Lines by their part of the looks in its gaps; of a wait, in the call itself."""
        if pattern == "sync":
            held = {gap.held for gap in self._gaps if gap.held and dict(gap.parts).get("sync")}
            return self.lines(sorted((call.start_ns, call.end_ns) for call in held))
        own = (gap for gap in self._gaps if gap.cause == pattern)
        return self.lines([(gap.start_ns, gap.end_ns) for gap in own])

    def of_gap(self, gap: Gap) -> str:
        """Of the longest one that was looked at, and that has the same cause and ends with the same
        kernel; "" where there is none."""
        alike = [one for one in self._gaps if one.cause == gap.cause and one.behind == gap.behind]
        for one in sorted(alike, key=lambda one: one.start_ns - one.end_ns)[:MOST_ALIKE]:
            spans = [(one.start_ns, one.end_ns)]
            if one.cause == "sync" and one.held is not None:
                spans = [(one.held.start_ns, one.held.end_ns)]
            if lines := self.lines(spans):
                return lines[0][0]
        return ""

    def lines(self, spans: Sequence[Span]) -> tuple[tuple[str, float], ...]:
        """Lines by their part of the looks in these spans, the first first."""
        counts: Counter[str] = Counter()
        at = 0
        for t_ns, index in self._looks:
            while at < len(spans) and spans[at][1] < t_ns:
                at += 1
            if at == len(spans):
                break
            if spans[at][0] <= t_ns and index < len(self._lines):
                counts[self._lines[index]] += 1
        total = sum(counts.values())
        return tuple((line, count / total) for line, count in counts.most_common(3) if line)


def line_of(place: Sequence[Frame]) -> str:
    """ "train.py:31 in step": the innermost frame of the user's own, else the innermost."""
    place = [frame for frame in place if not OUR_OWN.search(frame[1])]
    own = next((frame for frame in place if is_users(frame[1])), None)
    name, path, line = own or (place[0] if place else ("", "", 0))
    return f"{path.rpartition('/')[2]}:{line} in {name}" if path else ""


def _patterns(found: Partition, trace: Trace, looks: Looked, steps: int) -> tuple[PatternPart, ...]:
    span_ns = found.end_ns - found.start_ns
    ns: dict[Pattern, int] = {
        "launch": found.idle_ns("launch"),
        "input": found.idle_ns("input"),
        "copies": found.idle_ns("copies") + found.copies_ns,
        "sync": found.idle_ns("sync"),
        "communication": found.collectives_ns,
        "host": found.idle_ns("host"),
        "allocator": found.idle_ns("allocator"),
    }
    parts = []
    for pattern in sorted(ns, key=lambda one: -ns[one]):
        if ns[pattern] <= 0:
            continue
        parts.append(
            PatternPart(
                pattern,
                ns[pattern] / steps,
                ns[pattern] / span_ns,
                looks.of_pattern(pattern) if pattern not in ("launch", "communication") else (),
                _about(found, trace, pattern, steps),
            )
        )
    return tuple(parts)


def _about(found: Partition, trace: Trace, pattern: Pattern, steps: int) -> str:
    own = [ns for gap in found.gaps for cause, ns in gap.parts if cause == pattern]
    if pattern == "copies":
        uploads = [
            one
            for one in trace.activities
            if one.what == "to device" and found.start_ns <= one.start_ns < found.end_ns
        ]
        pageable = sum(one.bytes for one in uploads if one.pageable)
        total = sum(one.bytes for one in uploads)
        kind = "pageable" if pageable > total / 2 else "pinned"
        return f"{len(uploads) / steps:.0f} copies, {total / steps / 1e6:.1f} MB, mostly {kind}"
    if pattern == "communication":
        count = sum(one.what == "collective" for one in trace.activities)
        return f"{count} collectives in the window"
    if not own:
        return ""
    each = median(own)
    size = f"{each / 1e3:.0f} us" if each < 1e6 else f"{each / 1e6:.1f} ms"
    return f"{len(own) / steps:.0f} gaps, {size} in the middle"


def _longest(gaps: Sequence[Gap], looks: Looked) -> tuple[LongGap, ...]:
    found = []
    for gap in sorted(gaps, key=lambda one: one.start_ns - one.end_ns)[:LONGEST_GAPS]:
        line = looks.of_gap(gap)
        found.append(LongGap(gap.end_ns - gap.start_ns, gap.step, gap.cause, line, gap.behind))
    return tuple(found)


def _fusable(
    trace: Trace, found: Partition, asked: Mapping[tuple[str, int], Asked], steps: int
) -> Fusable:
    """Elementwise kernels of one stream, three or more in a row."""
    kernels = ns = rows = 0
    row: list[int] = []
    for one in trace.activities:
        if not found.start_ns < one.end_ns <= found.end_ns or one.what == "collective":
            continue
        if one.what == "kernel" and sort_of(one) == "elementwise":
            row.append(one.end_ns - one.start_ns)
            continue
        if len(row) >= FUSES_FROM:
            kernels, ns, rows = kernels + len(row), ns + sum(row), rows + 1
        row = []
    if len(row) >= FUSES_FROM:
        kernels, ns, rows = kernels + len(row), ns + sum(row), rows + 1
    return Fusable(kernels / steps, ns / steps, rows / steps)
