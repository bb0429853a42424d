"""The stretches of one measured step on both clocks, and how far the GPU was behind at each."""

from typing import NamedTuple

from probe.wire.messages import GpuStep, Step
from tui.verdict.spent import is_python

Times = dict[str, float]


class Span(NamedTuple):
    """One stretch as it was measured, ns a step. (Some hundreds are made for every verdict.)"""

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


def spans_of(host: Step, device: GpuStep, clinging_ns: int, starting_ns: int) -> list[Span]:
    """The spans of a row, a step of it, in the order of a step.

    `clinging_ns` of its Python belong to its checkpoint or evaluation; `starting_ns` of the
    loader's start-up are the training's. The lags follow from the first: what the GPU takes longer
    than the host adds to it.
    """
    ours, theirs = _parts(host, host.end_ns - host.start_ns), _parts(device, device.wall_ns)
    pause = "evaluation" if host.evaluation_ns else "checkpoint"
    if clinging_ns and host.other_ns:
        moved = min(1.0, clinging_ns / host.other_ns)
        _move(ours, "other", pause, moved)
        _move(theirs, "other", pause, moved)
    if host.startup_ns:
        part = 1.0 - starting_ns / host.startup_ns
        _move(ours, "startup", pause, part)
        _move(theirs, "startup", pause, part)
    for parts in (ours, theirs):
        if parts["startup"]:
            _move(parts, "startup", "data", 1.0)
    spans: list[Span] = []
    lag = float(device.lag_start_ns or 0)
    for name in ours:
        taken, worked = ours[name] / host.count, theirs[name] / host.count
        after = max(0.0, lag + worked - taken)
        if taken or worked:
            spans.append(Span(name, taken, worked, lag, after))
        lag = after
    return spans


def _parts(row: Step | GpuStep, wall_ns: int) -> Times:
    """A row's times by stretch; what no phase claims is Python."""
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
