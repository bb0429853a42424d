"""Why the device did nothing: every stretch without an activity, divided by what the host did.

The device's time from the end of the first step to the end of the last is divided without rest:
compute, collectives and copies that compute does not hide, and gaps. A gap ends with an activity.
Where the host had asked for that one before the gap began, the gap is the device's own: a
dependency, the time between two kernels of a queue. Else the host was late, and the part until its
call is divided by what it did meanwhile, in this order:

* it fetched a batch (input);
* it was in a call that copies to the device, or allocates;
* it made no call for `HOST_NS`: Python between the steps or phases (host), though a wait for the
  device may stand before it;
* calls that wait for the device had held it before: without them all that it launched since would
  have come so much earlier, and the gaps were shorter by as long in all (sync);
* else it launched (launch), and so is what passes between the call and the activity's beginning.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .events import HostCall, Trace
from .spans import Span, common, length, minus, union, within

Cause = Literal["input", "copies", "allocator", "sync", "host", "launch", "device"]

HOST_NS: Final = 1_000_000
"""An eager operator costs the host 5 to 100 us from one launch to the next (an H200's host: 7 us
for `add_`); ten of the slowest without one launch are something else."""

SYNC: Final = re.compile(
    r"Synchronize$|^cudaMemcpy$|^cudaMemcpy2D$|^cuStreamSync|^cuCtxSync|^cuEventSync|StreamQuery"
)
ALLOCATES: Final = re.compile(
    r"^cuda(Malloc|Free|HostAlloc|HostRegister)|^cuMem(Alloc|Free|Create|Map)"
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which the device did nothing."""

    start_ns: int
    end_ns: int
    parts: tuple[tuple[Cause, int], ...]
    """ns by cause; they add up to the gap."""
    held: HostCall | None
    """The call that had waited for the device, where there is one."""
    behind: str
    """Name of the activity that ended it."""
    step: int

    @property
    def cause(self) -> Cause:
        """The largest part's."""
        return max(self.parts, key=lambda part: part[1])[0]


@dataclass(frozen=True, slots=True)
class Partition:
    """The device's time over the steps, ns; all parts add up to it."""

    start_ns: int
    end_ns: int
    compute_ns: int
    collectives_ns: int
    """Exposed: nothing is computed meanwhile."""
    copies_ns: int
    """Exposed copies to the device."""
    other_copies_ns: int
    """Exposed copies to the host or on the device."""
    gaps: tuple[Gap, ...]

    def idle_ns(self, cause: Cause) -> int:
        """In gaps, by cause."""
        return sum(ns for gap in self.gaps for part, ns in gap.parts if part == cause)


def partition(trace: Trace, ends_ns: Sequence[int], fetches: Sequence[Span]) -> Partition | None:
    """`ends_ns`: when the host ended its steps; the first of them is not used. None without two of
    them that the device has worked for."""
    edges = device_edges(trace, ends_ns)
    if edges is None:
        return None
    start_ns, end_ns = edges[0], edges[-1]
    kinds: dict[str, list[Span]] = {"compute": [], "collective": [], "to device": [], "copy": []}
    for one in trace.activities:
        kind = {"collective": "collective", "to device": "to device", "to host": "copy"}.get(
            one.what, "copy" if one.what == "on device" else "compute"
        )
        kinds[kind].append((one.start_ns, one.end_ns))
    compute = within(union(kinds["compute"]), start_ns, end_ns)
    collective = minus(within(union(kinds["collective"]), start_ns, end_ns), compute)
    before = union([*compute, *collective])
    to_device = minus(within(union(kinds["to device"]), start_ns, end_ns), before)
    before = union([*before, *to_device])
    others = minus(within(union(kinds["copy"]), start_ns, end_ns), before)
    busy = union([*before, *others])
    idle = minus([(start_ns, end_ns)], busy)
    return Partition(
        start_ns,
        end_ns,
        length(compute),
        length(collective),
        length(to_device),
        length(others),
        _gaps(trace, idle, edges, fetches),
    )


def device_edges(trace: Trace, ends_ns: Sequence[int]) -> list[int] | None:
    """When the device had done what each step asked for, without the first step's beginning."""
    edges: list[int] = []
    asked = sorted((one.asked_ns, one.end_ns) for one in trace.activities)
    reached, at = 0, 0
    for end_ns in ends_ns[1:]:
        while at < len(asked) and asked[at][0] < end_ns:
            reached = max(reached, asked[at][1])
            at += 1
        if reached and (not edges or reached > edges[-1]):
            edges.append(reached)
    return edges if len(edges) >= 2 else None


def _gaps(
    trace: Trace, idle: Sequence[Span], edges: Sequence[int], fetches: Sequence[Span]
) -> tuple[Gap, ...]:
    starts = [one.start_ns for one in trace.activities]
    fetched = union(fetches)
    uploads = {one.correlation for one in trace.activities if one.what == "to device"}
    calls = trace.calls
    copying = union((c.start_ns, c.end_ns) for c in calls if c.correlation in uploads)
    allocating = union((c.start_ns, c.end_ns) for c in calls if ALLOCATES.search(c.name))
    any_call = union((c.start_ns, c.end_ns) for c in calls)
    waits = _waits(trace)
    waited = 0
    lead_ns = 0
    """What the last wait before the steps and all since have held the host for, less what gaps have
    taken of it."""
    last: HostCall | None = None
    found = []
    for start_ns, end_ns in idle:
        at = bisect_left(starts, end_ns)
        ended_by = trace.activities[at] if at < len(starts) else None
        asked_ns = ended_by.asked_ns if ended_by else end_ns
        until_ns = max(start_ns, min(asked_ns, end_ns))
        parts: dict[Cause, int] = {}
        left = [(start_ns, until_ns)] if until_ns > start_ns else []
        for cause, spans in (("input", fetched), ("copies", copying), ("allocator", allocating)):
            taken = common(left, within(spans, start_ns, until_ns))
            if taken:
                parts[cause] = length(taken)  # type: ignore[index]
                left = minus(left, taken)
        while waited < len(waits) and waits[waited].end_ns <= until_ns:
            last = waits[waited]
            before = lead_ns if last.end_ns > edges[0] else 0
            lead_ns = before + last.end_ns - last.start_ns
            waited += 1
        quiet = minus(left, within(any_call, start_ns, until_ns))
        python = [(a, b) for a, b in quiet if b - a >= HOST_NS]
        parts["host"], left = length(python), minus(left, python)
        late = until_ns > start_ns
        held = last if lead_ns > 0 and late else None
        after_ns = end_ns - until_ns
        if held is not None:
            parts["sync"] = min(length(left) + after_ns, lead_ns)
            after_ns -= max(0, parts["sync"] - length(left))
            left = _without(left, parts["sync"])
        if late:
            lead_ns = max(0, lead_ns - (end_ns - start_ns))
        parts["launch"] = length(left) + (after_ns if late else 0)
        parts["device"] = 0 if late else after_ns
        if ended_by is not None and ended_by.call.startswith(("cudaGraphLaunch", "cuGraphLaunch")):
            _inside_graph(trace, at, parts)
        kept: tuple[tuple[Cause, int], ...] = tuple((c, ns) for c, ns in parts.items() if ns > 0)
        step = bisect_right(edges, start_ns) - 1
        name = ended_by.name if ended_by else ""
        found.append(Gap(start_ns, end_ns, kept, held, name, step))
    return tuple(found)


def _inside_graph(trace: Trace, at: int, parts: dict[Cause, int]) -> None:
    """Between two kernels of one graph the host has no part."""
    if at and trace.activities[at - 1].correlation == trace.activities[at].correlation:
        total = sum(parts.values())
        parts.clear()
        parts["device"] = total


def _waits(trace: Trace) -> list[HostCall]:
    """Calls in which the host waited for the device, by their end. A copy to the host from memory
    that is not pinned waits in the copy itself."""
    back = {one.correlation for one in trace.activities if one.what == "to host" and one.pageable}
    found = [call for call in trace.calls if SYNC.search(call.name) or call.correlation in back]
    return sorted(found, key=lambda call: call.end_ns)


def _without(spans: Sequence[Span], ns: int) -> list[Span]:
    """Spans without their first so many ns."""
    out: list[Span] = []
    for start, end in spans:
        cut = min(ns, end - start)
        ns -= cut
        if end > start + cut:
            out.append((start + cut, end))
    return out
