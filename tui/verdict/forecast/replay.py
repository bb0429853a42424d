"""Daydream in small: the steps of a window run again on the clocks of host and GPU."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Literal, NamedTuple

from ...steps import GpuStep, Step
from ..step_time import is_python
from ..thresholds.hysteresis import SYNC_SEEN

# A step as a replay needs it: segments of the host's time with the GPU's work that they issue.

ISSUING: Final = ("forward", "backward", "optimizer")
"""Segments in which the host issues the training's kernels."""


class Segment(NamedTuple):
    """From one mark to the next. (Some thousands are made anew for every verdict.)"""

    name: str
    """"data", one of `ISSUING`, "other", "wait", "checkpoint", "evaluation" or "compile"."""
    host_ns: float
    """What the host does there, without what it waits for the GPU."""
    device_ns: float
    """What the GPU works on what is issued there."""
    idle_ns: float = 0.0
    """What the GPU stands idle whatever the host does: its batch is not made yet."""
    waits: bool = False
    """At its end the host waits until the GPU is done."""


@dataclass(frozen=True, slots=True)
class StepReplay:
    """The replayable steps of a window, oldest first."""

    steps: tuple[tuple[float, tuple[Segment, ...]], ...]
    """Each with for how many steps of the run it stands."""
    step_ns: float
    """Length of a step on the GPU's clock, as it was measured."""
    lag_ns: float
    """How far the GPU was behind the host at the start of the first."""
    ahead_ns: float
    """How far behind it may fall: the launch queue holds no more, as far as was seen."""

    def host_ns(self, names: tuple[str, ...]) -> float:
        """The host's time in these segments, ns per step."""
        return self._mean(names, lambda one: one.host_ns)

    def device_ns(self, names: tuple[str, ...]) -> float:
        """The GPU's work of these segments, ns per step."""
        return self._mean(names, lambda one: one.device_ns)

    def at_best(self) -> "StepReplay":
        """With an endless launch queue, behind which late batches hide as well: nothing real is
        faster."""
        steps = tuple(
            (count, tuple(one._replace(idle_ns=0.0) if one.idle_ns else one for one in row))
            for count, row in self.steps
        )
        return replace(self, steps=steps, ahead_ns=inf)

    def _mean(self, names: tuple[str, ...], of: Callable[[Segment], float]) -> float:
        steps = sum(count for count, _ in self.steps)
        total = sum(
            count * of(one) for count, row in self.steps for one in row if one.name in names
        )
        return total / steps


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes with a cause: for each segment the part that is left, 0 to 1."""

    host: Mapping[str, float] = field(default_factory=dict)
    device: Mapping[str, float] = field(default_factory=dict)
    waits: bool = False
    """The host no longer waits for the GPU."""

    def joined(self, other: "Removal") -> "Removal":
        """Both causes removed: what each takes of a segment is not the same part of it."""
        return Removal(
            _both(self.host, other.host),
            _both(self.device, other.device),
            self.waits or other.waits,
        )

    def of(self, record: StepReplay) -> StepReplay:
        """The replay without the cause."""
        steps = tuple((count, tuple(map(self._of, row))) for count, row in record.steps)
        return replace(record, steps=steps)

    def _of(self, one: Segment) -> Segment:
        name, host_ns, device_ns, idle_ns, waits = one
        if name not in self.host and name not in self.device and not (waits and self.waits):
            return one
        device = self.device.get(name, 1.0)
        return Segment(
            name,
            host_ns=host_ns * self.host.get(name, 1.0),
            device_ns=device_ns * device,
            idle_ns=idle_ns * device,
            waits=waits and not (self.waits or device == 0.0),
        )


def _both(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    names = {*one, *other}
    return {name: max(0.0, one.get(name, 1.0) + other.get(name, 1.0) - 1.0) for name in names}


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

# The segments of one measured step on both clocks, and how far the GPU was behind at each.

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
    the training's. The lags follow from the first: what the GPU takes longer
    than the host adds to it.
    """
    ours, theirs = _parts(host, host.end_ns - host.start_ns), _parts(device, device.wall_ns)
    pause = "evaluation" if host.evaluation_ns else "checkpoint"
    if clinging_ns and host.other_ns:
        moved = min(1.0, clinging_ns / host.other_ns)
        for parts in (ours, theirs):
            clings = moved * parts["other"]
            _move(parts, "other", pause, moved)
            if pause == "checkpoint" and saving < 1.0:
                _move(parts, pause, "evaluation", clings * (1.0 - saving) / parts[pause])
    if host.startup_ns:
        part = 1.0 - starting_ns / host.startup_ns
        _move(ours, "startup", pause, part)
        _move(theirs, "startup", pause, part)
    for parts in (ours, theirs):
        if parts["startup"]:
            _move(parts, "startup", "data", 1.0)
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


def _move(parts: Times, source: str, target: str, share: float) -> None:
    moved = share * parts[source]
    parts[source] -= moved
    parts[target] += moved


def replay(record: StepReplay) -> float:
    """Mean length of a step on the GPU's clock, ns.

        host   += its own work, and waits where it did, or where the launch queue is full
        device  = max(device + its work, host): nothing runs before it is issued

    Played twice, and the second time counted: what the run was before has left the queue by then.
    """
    _, lag_ns = _play(record, record.lag_ns)
    total_ns, _ = _play(record, lag_ns)
    return total_ns / sum(count for count, _ in record.steps)


def _play(record: StepReplay, lag_ns: float) -> tuple[float, float]:
    """The GPU's time for all the steps, ns, and its lag after them."""
    host, device, total, ahead_ns = 0.0, lag_ns, 0.0, record.ahead_ns
    for count, segments in record.steps:
        began = device
        for _, host_ns, device_ns, idle_ns, waits in segments:
            # No `max`: tens of thousands of segments are played at every judgement.
            host += host_ns
            device = device + idle_ns + device_ns
            if host > device:
                device = host
            earliest = device if waits else device - ahead_ns
            if earliest > host:
                host = earliest
        total += count * (device - began)
    return total, device - host


def segments_of(
    row: Sequence[MeasuredSegment],
    worked: Sequence[float],
    keeps_up_ns: float,
    late: bool,
    waited: float | None,
    copied: float = 0.0,
    drained: Collection[str] = (),
    python: float = 0.0,
) -> tuple[Segment, ...]:
    """The segments of a step, whose spans hold the GPU's `worked` ns.

    `late`: batches come from workers, at their own pace. `waited`: part of the host's time in which
    it waits for the GPU, None without samples; then it may wait anywhere. `copied`: of that the
    part in copies from pageable memory, which wait for what was queued before them. `drained`:
    segments in which the clocks show that it waits; `python`: part of its time in lines of the
    user's own, the only ones that count as work where it waits in functions that are not known.
    """
    seen = waited is None or waited >= SYNC_SEEN
    cuts = [
        _waits(span, work, keeps_up_ns) if seen or span.name in drained else None
        for span, work in zip(row, worked, strict=True)
    ]
    step_ns = sum(span.host_ns for span in row)
    copied_ns = copied * step_ns
    if waited is not None:
        held_ns = sum(work for work, cut in zip(worked, cuts, strict=True) if cut == "last")
        if waited * step_ns < WAITS_SEEN * held_ns:
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
    lost_ns = sum(span.drop_ns for span, cut in zip(row, cuts, strict=True) if cut)
    # What the host lost of its lead and did not wait for, it worked.
    worked_on = 0.0 if waited is None or not lost_ns else max(0.0, 1 - waited * step_ns / lost_ns)
    found: list[Segment] = []
    for span, work, cut in zip(row, worked, cuts, strict=True):
        gap, own = max(0.0, span.device_ns - work), worked_on
        if span.name in drained and own > UNKNOWN_WAITS:
            own = min(own, python * step_ns / lost_ns)
        if span.name == "data":
            found.append(Segment("data", span.host_ns, 0.0, span.device_ns if late else 0.0))
        elif span.name == "checkpoint":
            found.append(Segment(span.name, 0.0, 0.0, waits=True))
            found.append(Segment(span.name, gap, work))
        elif cut == "last":
            found.append(Segment(span.name, own * span.drop_ns, 0.0))
            found.append(Segment("wait", 0.0, work, waits=True))
            found.append(Segment(span.name, gap, 0.0))
        elif cut == "first":
            found.append(Segment(span.name, own * span.drop_ns, 0.0))
            found.append(Segment("wait", 0.0, 0.0, waits=True))
            found.append(Segment(span.name, gap, 0.0))
            found.append(Segment(span.name, max(0.0, work - span.after_ns), work))
        elif ahead and span.name in ISSUING:
            found.append(Segment(span.name, span.host_ns * launching, work))
        elif span.name == "forward" and span.before_ns > keeps_up_ns and _held_by(copied_ns, span):
            # A copy of the batch waits for what is queued before it.
            found.append(Segment("forward", 0.0, 0.0, waits=True))
            found.append(Segment("forward", max(0.0, span.host_ns - span.before_ns), work))
        else:
            found.append(Segment(span.name, span.host_ns, work))
    if waited is not None and (seen or drained) and row[-1].after_ns <= keeps_up_ns:
        # Seen to wait, though not for long: the GPU had caught up. It still would, were it behind.
        if waited - copied >= SYNC_SEEN:
            found[-1] = found[-1]._replace(waits=True)
        elif found[0].name == "data":
            # The next batch is made while the GPU works on this one.
            found[0] = found[0]._replace(waits=True)
    return tuple(found)


def _hardly_ahead(span: MeasuredSegment, drained: Collection[str]) -> bool:
    return span.name not in drained and span.before_ns <= NEARLY * span.host_ns


def _held_by(copied_ns: float, span: MeasuredSegment) -> bool:
    """Copies take as long as what they would wait for, about; those from pinned memory do not."""
    return copied_ns >= COPY_HELD * span.before_ns


def _waits(
    span: MeasuredSegment, work_ns: float, keeps_up_ns: float
) -> Literal["first", "last"] | None:
    """Whether the host waited for the GPU there: before the GPU's work of the span, or after it.

    After it, the GPU was behind and then is not. Before it, the host lost its lead, the GPU stood
    idle, and the host is ahead again.
    """
    if span.drop_ns <= keeps_up_ns or span.before_ns <= keeps_up_ns:
        return None
    if span.after_ns <= keeps_up_ns:
        return "last"
    return "first" if span.device_ns - work_ns > keeps_up_ns else None
