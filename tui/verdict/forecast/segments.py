"""The segments of a measured step on both clocks: what host and GPU did, and where they waited."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple

from ...steps import GpuStep, Step
from ..step_time import is_python
from ..thresholds.hysteresis import SYNC_SEEN
from .replay import ISSUING, NET, Segment

UNKNOWN_WAITS: Final = 0.8
"""Samples in functions that are known to wait explain less than a fifth of a wait that both clocks
show: it is in one that is not known."""

QUEUED: Final = 1024
LAUNCH_NS: Final = 10_000
"""The launch queue holds so many, and PyTorch's host takes about so long for one (7 to 25 us of
nets on H200s). For a host that never waits a GPU is behind by a full queue, whose launches take the
host so long for each that they take the GPU, or the host is the slower of the two."""
NEARLY: Final = 0.1
"""A GPU that was behind by a tenth of a phase had nearly caught up: what was queued is no reason to
take it for busy all through, nor a host that loses so little of a lead for one that waits…"""
WAITS_SEEN: Final = 0.5
"""…unless samples show it to wait for half of what the GPU works then. An LSTM on an H200, 0.4 ms
behind in the middle of 16: its net's forward was taken to be all work and its backward all wait,
1.5x by a CUDA graph, where 1.95x was measured."""

COPY_HELD: Final = 0.5
"""Of what is queued as the forward begins, lines that copy must hold so much to wait for it."""

Times = dict[str, float]


class MeasuredSegment(NamedTuple):
    """One segment as it was measured, ns a step. (Some hundreds are made for every verdict.)"""

    name: str
    host_ns: float
    device_ns: float
    before_ns: float
    """How far the GPU was behind the host at its start."""
    after_ns: float
    """And at its end."""

    @property
    def drop_ns(self) -> float:
        """By how much the host fell back to the GPU."""
        return self.host_ns - self.device_ns


def spans_of(
    host: Step, device: GpuStep, clinging_ns: int, starting_ns: int, saving: float = 1.0
) -> list[MeasuredSegment]:
    """The spans of a row, a step of it, in the order of a step.

    `clinging_ns` of its Python belong to its checkpoint or evaluation, of a checkpoint's `saving`
    to it and the rest to an evaluation without a mark; `starting_ns` of the loader's start-up are
    the training's. The lags follow from the first: what the GPU takes longer than the host adds to
    it.
    """
    ours, theirs = _parts(host, host.end_ns - host.start_ns), _parts(device, device.wall_ns)
    pause = "evaluation" if host.evaluation_ns else "checkpoint"
    if clinging_ns and host.other_ns:
        moved = min(1.0, clinging_ns / host.other_ns)
        for parts in (ours, theirs):
            clings = moved * parts["other"]
            kept = clings * saving if pause == "checkpoint" else clings
            _move(parts, "other", pause, kept)
            _move(parts, "other", "evaluation", clings - kept)
    if host.startup_ns:
        part = 1.0 - starting_ns / host.startup_ns
        for parts in (ours, theirs):
            _move(parts, "startup", pause, part * parts["startup"])
    for parts in (ours, theirs):
        _move(parts, "startup", "data", parts["startup"])
    spans: list[MeasuredSegment] = []
    lag = float(device.lag_start_ns or 0)
    for name in ours:
        taken, worked = ours[name] / host.count, theirs[name] / host.count
        after = max(0.0, lag + worked - taken)
        if taken or worked:
            spans.append(MeasuredSegment(name, taken, worked, lag, after))
        lag = after
    return spans


def _parts(row: Step | GpuStep, wall_ns: int) -> Times:
    """A row's times by segment; what no phase claims is Python."""
    python = named = 0
    for name, ns in row.phases.items():
        if is_python(name):
            python += ns
        else:
            named += ns
    parts: Times = {
        "startup": row.startup_ns,
        "data": row.data_ns,
        "forward": row.forward_ns + named,
        "backward": row.backward_ns,
        "optimizer": row.optimizer_ns,
        "other": row.other_ns + python,
        "evaluation": row.evaluation_ns,
        "checkpoint": row.checkpoint_ns,
        "compile": row.compile_ns,
    }
    parts["other"] += max(0.0, wall_ns - sum(parts.values()))
    return parts


def _move(parts: Times, source: str, target: str, ns: float) -> None:
    parts[source] -= ns
    parts[target] += ns


@dataclass(frozen=True, slots=True)
class HostSeen:
    """What samples and both clocks show of the host in the measured steps."""

    waited: float | None
    """Part of its time in which it waits for the GPU; None without samples: then it may wait
    anywhere."""
    copied: float = 0.0
    """Of that the part in copies from pageable memory, which wait for what was queued before."""
    drained: frozenset[str] = frozenset()
    """Segments in which the clocks show that it waits."""
    python: float = 0.0
    """Part of its time in lines of the user's own, the only ones that count as work where it waits
    in functions that are not known."""
    between: float = 1.0
    """Part of its time that samples show between the phases and not waiting."""
    issued_ns: float = inf
    """The most that issuing the net takes it in a step; what is more, where the GPU is far behind
    all the time, it waits for a full queue."""


def segments_of(
    row: Sequence[MeasuredSegment],
    worked: Sequence[float],
    keeps_up_ns: float,
    late: bool,
    seen: HostSeen,
    waited_ns: float | None = None,
) -> tuple[Segment, ...]:
    """The segments of a step, whose spans hold the GPU's `worked` ns.

    `late`: batches come from workers, at their own pace. `waited_ns`: what this step has of the
    host's waits; None: as much as any.
    """
    waited, drained = seen.waited, seen.drained
    cuts = _cuts(row, worked, keeps_up_ns, seen)
    step_ns = sum(span.host_ns for span in row)
    copied_ns = seen.copied * step_ns
    if waited_ns is None:
        waited_ns = (waited or 0.0) * step_ns
    if waited is not None:
        held_ns = sum(work for work, cut in zip(worked, cuts, strict=True) if cut == "last")
        if waited_ns < WAITS_SEEN * held_ns:
            # It launches more slowly than the GPU works: samples show no such wait.
            cuts = [
                None if cut == "last" and _hardly_ahead(span, drained) else cut
                for span, cut in zip(row, cuts, strict=True)
            ]
    # A GPU that never caught up was never short of work: how long the host alone would have taken
    # is not known, only that it was less.
    ahead = "first" not in cuts and all(span.after_ns > keeps_up_ns for span in row)
    ahead = ahead and all(
        span.device_ns - work <= keeps_up_ns
        for span, work in zip(row, worked, strict=True)
        if span.name in ISSUING
    )
    launching = min(1.0, QUEUED * LAUNCH_NS / max(1.0, *(span.after_ns for span in row)))
    lost = sum(span.drop_ns for span, cut in zip(row, cuts, strict=True) if cut)
    # What the host lost of its lead and did not wait for, it worked.
    worked_on = 0.0 if waited is None or not lost else max(0.0, 1 - waited_ns / lost)
    nets_ns = sum(span.host_ns for span in row if span.name in NET) or 1.0
    found: list[Segment] = []
    for span, work, cut in zip(row, worked, cuts, strict=True):
        gap, own = max(0.0, span.device_ns - work), worked_on
        if span.name in drained and own > UNKNOWN_WAITS:
            own = min(own, seen.python * step_ns / lost)
        if span.name == "other" and waited and lost:
            own = min(own, seen.between / waited * waited_ns / lost)
        if span.name == "data":
            found.append(Segment("data", span.host_ns, 0.0, span.device_ns if late else 0.0))
        elif span.name == "checkpoint":
            found.append(Segment(span.name, 0.0, 0.0, waits=True))
            found.append(Segment(span.name, gap, work))
        elif cut == "last":
            found.append(Segment(span.name, own * span.drop_ns, 0.0))
            held, idle = Segment("wait", 0.0, work, waits=True), Segment(span.name, gap, 0.0)
            if _begins_with_copy(span, copied_ns, keeps_up_ns):
                # What the host does while the GPU has nothing left lies behind the copy: it issues
                # the net there, and the read at the end waits for that.
                found += [Segment(span.name, 0.0, 0.0, waits=True), idle, held]
            else:
                found += [held, idle]
        elif cut == "first":
            found.append(Segment(span.name, own * span.drop_ns, 0.0))
            found.append(Segment("wait", 0.0, 0.0, waits=True))
            found.append(Segment(span.name, gap, 0.0))
            found.append(Segment(span.name, max(0.0, work - span.after_ns), work))
        elif ahead and span.name in ISSUING:
            found.append(Segment(span.name, span.host_ns * launching, work))
        elif _begins_with_copy(span, copied_ns, keeps_up_ns):
            # A copy of the batch waits for what is queued before it.
            found.append(Segment("forward", 0.0, 0.0, waits=True))
            found.append(Segment("forward", max(0.0, span.host_ns - span.before_ns), work))
        elif span.name in NET and _keeps_queue_full(span, work, keeps_up_ns):
            most_ns = seen.issued_ns * span.host_ns / nets_ns
            found.append(Segment(span.name, min(span.host_ns, most_ns), work))
        else:
            found.append(Segment(span.name, span.host_ns, work))
    if waited is not None and (waited >= SYNC_SEEN or drained) and row[-1].after_ns <= keeps_up_ns:
        # Seen to wait, though not for long: the GPU had caught up. It still would, were it behind.
        if waited - seen.copied >= SYNC_SEEN:
            found[-1] = found[-1]._replace(waits=True)
        elif found[0].name == "data":
            # The next batch is made while the GPU works on this one.
            found[0] = found[0]._replace(waits=True)
    return tuple(found)


def lost_ns(
    row: Sequence[MeasuredSegment], worked: Sequence[float], keeps_up_ns: float, seen: HostSeen
) -> float:
    """What the host of a step lost of its lead where it may have waited for the GPU."""
    cuts = _cuts(row, worked, keeps_up_ns, seen)
    return sum(span.drop_ns for span, cut in zip(row, cuts, strict=True) if cut)


Cut = Literal["first", "last"] | None
"""Whether the host waited for the GPU in a span: before the GPU's work of it, or after it."""


def _cuts(
    row: Sequence[MeasuredSegment], worked: Sequence[float], keeps_up_ns: float, seen: HostSeen
) -> list[Cut]:
    may_wait = seen.waited is None or seen.waited >= SYNC_SEEN
    return [
        _waits(span, work, keeps_up_ns, span.name in seen.drained)
        if may_wait or span.name in seen.drained
        else None
        for span, work in zip(row, worked, strict=True)
    ]


def _keeps_queue_full(span: MeasuredSegment, work: float, keeps_up_ns: float) -> bool:
    """All through the span the GPU has work for longer than the host takes to launch what the queue
    holds."""
    behind_ns = min(span.before_ns, span.after_ns)
    return behind_ns > QUEUED * LAUNCH_NS and span.device_ns - work <= keeps_up_ns


def _hardly_ahead(span: MeasuredSegment, drained: Collection[str]) -> bool:
    return span.name not in drained and span.before_ns <= NEARLY * span.host_ns


def _begins_with_copy(span: MeasuredSegment, copied_ns: float, keeps_up_ns: float) -> bool:
    """Of the batch, which waits for what was queued before it: copies take as long as that, about;
    those from pinned memory do not."""
    if span.name != "forward" or span.before_ns <= keeps_up_ns:
        return False
    return copied_ns >= COPY_HELD * span.before_ns


def _waits(span: MeasuredSegment, work_ns: float, keeps_up_ns: float, drained: bool) -> Cut:
    """After the span's work, the GPU was behind and then is not. Before it, the host lost its lead,
    the GPU stood idle, and the host is ahead again; or, in a span that drains what was queued
    before, no more is left of the lead than the span's own work.
    """
    if span.drop_ns <= keeps_up_ns or span.before_ns <= keeps_up_ns:
        return None
    if span.after_ns <= keeps_up_ns:
        return "last"
    if drained and span.after_ns <= span.device_ns:
        return "first"
    return "first" if span.device_ns - work_ns > keeps_up_ns else None
