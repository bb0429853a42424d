"""Daydream in small: the steps of a window run again on the clocks of host and GPU."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, NamedTuple

# A step as a replay needs it: segments of the host's time with the GPU's work that they issue.

NET: Final = ("forward", "backward")
"""Segments of the net…"""
ISSUING: Final = (*NET, "optimizer")
"""…and all in which the host issues the training's kernels."""


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
    copies_wait: bool = False
    """Lines of the forward copy to the GPU, and wait there for what is queued: for nothing where
    the host has just waited for all of it, and as long as it did once it no longer does."""

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
    """The host no longer waits for the GPU…"""
    copies: bool = False
    """…nor in copies to it."""

    def joined(self, other: "Removal") -> "Removal":
        """Both causes removed: what each takes of a segment is not the same part of it."""
        return Removal(
            _both(self.host, other.host),
            _both(self.device, other.device),
            self.waits or other.waits,
            self.copies or other.copies,
        )

    def of(self, record: StepReplay) -> StepReplay:
        """The replay without the cause."""
        kept = record.copies_wait and self.waits and not self.copies
        steps = tuple(
            (count, tuple(_copied_first(map(self._of, row)) if kept else map(self._of, row)))
            for count, row in record.steps
        )
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


def _copied_first(row: Iterable[Segment]) -> Iterator[Segment]:
    """A step in which the host waits for the GPU before its forward."""
    copied = False
    for one in row:
        if one.name == "forward" and not copied:
            copied = True
            yield Segment("forward", 0.0, 0.0, waits=True)
        yield one


def _both(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    names = {*one, *other}
    return {name: max(0.0, one.get(name, 1.0) + other.get(name, 1.0) - 1.0) for name in names}


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
