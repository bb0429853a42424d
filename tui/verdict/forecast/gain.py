"""What removing a cause alone would give, and what removing two of them together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from ..cpu_wait import starved, taken_of_threads
from ..findings import Finding, Kind
from ..gpu_clock import unmeasured
from ..loader import loader_floor, often_late
from ..pauses import Pauses, training_restarts
from ..step_time import spent
from ..thresholds import hysteresis as limits
from ..window import RunFacts, StepWindow
from .measured import replay_of
from .removals import (
    NO_COPY_WAITS,
    removal_by_merging,
    removal_by_one_call,
    removal_by_step_graph,
    removal_of,
    removal_of_computed,
    removal_of_kernels,
)
from .replay import NET, Removal, StepReplay, replay


@dataclass(frozen=True, slots=True)
class Gain:
    """Steps a second after over before."""

    speedup: float
    speedup_is: Literal["estimate", "bound"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A window that a replay understands: with nothing removed it gives what was measured."""

    window: StepWindow
    record: StepReplay
    now_ns: float
    """A step of that replay."""

    def left(self, kinds: Collection[Kind], at_best: bool = False) -> float | None:
        """Length of a step without these causes, as part of what it is, 0 to 1; None for causes
        that no replay takes away. An epoch's start goes with the cause "input", compilations with
        "recompile"; other steps that were not measured stay as they are."""
        within = self.within(kinds, at_best)
        return None if within is None else self._of_all(within, kinds)

    def without_waits(self) -> float | None:
        """The same where the host waits for the GPU neither in reads nor in copies."""
        reads = removal_of("sync", self.window, self.record)
        return None if reads is None else self._of_all(self._after(reads.joined(NO_COPY_WAITS)))

    def in_one_call(self) -> float | None:
        """The same where the net is called once for a whole batch and not for its parts."""
        removed = removal_by_one_call(self.window, self.record)
        return None if removed is None else self._of_all(self._after(removed))

    def merged(self, times: int) -> float | None:
        """The same where so many batches of an update go through the net at once."""
        removed = removal_by_merging(self.window, self.record, times)
        return None if removed is None else self._of_all(self._after(removed))

    def in_one_graph(self) -> float:
        """The same where the whole step is one CUDA graph."""
        return self._of_all(self._after(removal_by_step_graph(self.window, self.record)))

    def with_kernels(self, left: float) -> float:
        """The same where the net's kernels take this part of their time."""
        return self._of_all(self._after(removal_of_kernels(left)))

    def _of_all(self, within: float, kinds: Collection[Kind] = ()) -> float:
        """Of the whole window, without these causes."""
        beside = unmeasured(self.window)
        starts = 0.0 if "input" in kinds else beside.starting
        pauses = beside.paused - (beside.compiling if "recompile" in kinds else 0.0)
        return min(1.0, beside.left * within + pauses + starts)

    def on_device(self, kinds: Collection[Kind]) -> float | None:
        """The same where what a traced step computes on the CPU takes no time either."""
        removed = self._removed(kinds)
        if removed is None:
            return None
        removed = removed.joined(removal_of_computed(self.window, self.record))
        return self._of_all(self._after(removed, fed="input" in kinds), kinds)

    def within(
        self, kinds: Collection[Kind], at_best: bool = False, fed: bool = False
    ) -> float | None:
        """The same of the measured steps alone. Unless they are `fed`, no cause outside the loader
        may beat it, S/W: plain replay gave 1.27x for removing a sync where the loader was the
        limit, and the truth was 1.00x (simulated)."""
        removed = self._removed(kinds)
        return None if removed is None else self._after(removed, at_best, fed or "input" in kinds)

    def _removed(self, kinds: Collection[Kind]) -> Removal | None:
        removed = Removal()
        for kind in kinds:
            removal = removal_of(kind, self.window, self.record)
            if removal is None:
                return None
            removed = removed.joined(removal)
        return removed

    def _after(self, removed: Removal, at_best: bool = False, fed: bool = False) -> float:
        least = limits.LEAST_LEFT if fed else loader_floor(self.window)
        then = removed.of(self.record.at_best() if at_best else self.record)
        return min(1.0, max(limits.LEAST_LEFT, least, replay(then) / self.now_ns))


@lru_cache(maxsize=4)
def replayed(window: StepWindow) -> Replayed | None:
    """None where the GPU's clock is not read, or where a replay with nothing removed misses the
    measured step: then shares of the time are all that is known."""
    record = replay_of(window)
    if record is None:
        return None
    now_ns = replay(record)
    if abs(now_ns / record.step_ns - 1) > limits.REPLAY_WITHIN:
        return None
    return Replayed(window, record, now_ns)


def gain_without(kind: Kind, window: StepWindow, at_most: bool | None = None) -> Gain | None:
    """By replay. `at_most`: a fix leaves something of the cause; False: an estimate all the same.

    Where batches are often late, what is gained outside the loader is a bound too: whether a batch
    that comes late would still be in time is not in the record.
    """
    known = replayed(window)
    if at_most is None:
        at_most = kind != "input" and often_late(window)
    left = None if known is None else known.left((kind,), at_most)
    return None if left is None else Gain(1.0 / left, "bound" if at_most else "estimate")


def gain_without_both(one: Kind, other: Kind, window: StepWindow) -> float | None:
    """Steps a second after over before, with two causes removed together."""
    known = replayed(window)
    left = None if known is None else known.left((one, other))
    return None if left is None else 1.0 / left


def gain_on_device(window: StepWindow, *kinds: Kind) -> Gain | None:
    """With these causes and what a traced step computes on the CPU removed together."""
    known = replayed(window)
    left = None if known is None else known.on_device(kinds)
    return None if left is None else Gain(1.0 / left, "estimate")


def gain_without_waits(window: StepWindow) -> float | None:
    """Steps a second after over before, of a host that waits neither in reads nor in copies."""
    known = replayed(window)
    left = None if known is None else known.without_waits()
    return None if left is None else 1.0 / left


def gain_of_one_call(window: StepWindow) -> Gain | None:
    """Of a net that is called for the parts of a batch one by one: called for all of it instead."""
    known = replayed(window)
    left = None if known is None else known.in_one_call()
    return None if left is None else Gain(1.0 / left, "estimate")


def gain_of_merging(window: StepWindow, times: int) -> float | None:
    """Steps a second after over before, of updates whose batches go through the net so many at
    once."""
    known = replayed(window)
    left = None if known is None else known.merged(times)
    return None if left is None else 1.0 / left


def gain_of_step_graph(window: StepWindow) -> float | None:
    """Steps a second after over before, of a CUDA graph of the whole step."""
    known = replayed(window)
    return None if known is None else 1.0 / known.in_one_graph()


def gain_of_kernels(window: StepWindow, left: float) -> Gain | None:
    """Of kernels of the net that take this part of their time, 0 to 1. A bound where all that the
    host does in the net's phases is waiting: how long it alone would take is not known then."""
    known = replayed(window)
    if known is None:
        return None
    unknown = not known.record.host_ns(NET)
    return Gain(1.0 / known.with_kernels(left), "bound" if unknown else "estimate")


def gain_of_pauses(kind: Kind, window: StepWindow, found: Pauses) -> Gain | None:
    """The same for pauses that are rarer than a window is long, by the mean step over enough of
    them; without a GPU by what they take. Steps between them stay what they are at least, and
    workers that end with their epoch make no batches in the evaluation after it."""
    known = replayed(window)
    fed = kind == "evaluation" and training_restarts(window)
    left = None if known is None else known.within((kind,), fed=fed)
    if known is None or left is None or found.mean_ns <= 0:
        return gain_on_the_host(window, found.share.mean, pace_ns=found.mean_ns)
    after_ns = max(found.step_ns, left * known.record.step_ns)
    return Gain(max(1.0, found.mean_ns / after_ns), "estimate")


def gain_on_the_host(
    window: StepWindow, share: float, frees_cores: bool = False, pace_ns: float = 0.0
) -> Gain | None:
    """Without a GPU: the host's phases are the truth, and one after the other, so that what lies
    beside the cause is what is left. None with a GPU.

    `frees_cores`: the loader's work goes too, and with it the wait for cores that its processes
    have; else the loader may be the limit next. `pace_ns`: a step with its part of pauses that the
    window does not hold, in which the loader is no limit.
    """
    if window.gpu_present:
        return None
    least, left = loader_floor(window), 1.0 - share
    if pace_ns > 0:
        total = spent(window.steps)
        least *= min(1.0, total.wall_ns / max(1, total.steps) / pace_ns)
    if frees_cores:
        lack, workers = starved(window), window.loaders and window.loaders[0].num_workers
        own = 0.0
        if lack is not None and workers:
            # Without workers the threads of the net alone wait for each other, and go on to.
            own = lack.by_itself
        own = max(own, taken_of_threads(window))
        least, left = 0.0, left * (1.0 - own)
    return Gain(1.0 / min(1.0, max(limits.LEAST_LEFT, least, left)), "estimate")


def either_of(top: Finding, others: Sequence[Finding], window: RunFacts) -> tuple[Kind, ...]:
    """The kinds among `others` of which each alone, as `top` alone, gives 70 % of what both give.
    Their gains are the same time, seen twice: never to be added."""
    known = replayed(window) if others else None
    alone = None if known is None else known.left((top.kind,))
    if known is None or alone is None:
        return ()
    found: list[Kind] = []
    for other in others:
        theirs = known.left((other.kind,))
        both = known.left((top.kind, other.kind))
        if theirs is None or both is None:
            continue
        joint = 1.0 - both
        if joint > limits.ENTER_SHARE and 1.0 - max(alone, theirs) >= limits.JOINT * joint:
            found.append(other.kind)
    return tuple(found)


def with_the_other_way(
    top: Finding, others: Sequence[Finding], either: tuple[Kind, ...]
) -> Finding:
    """`top` with the alternative right after its own first action."""
    ways = [
        f"or instead: {other.advice[0]} (either fix gives about the same, both hardly more)"
        for other in others
        if other.kind in either and other.advice and not _same(top, other)
    ]
    return replace(top, advice=(*top.advice[:1], *ways, *top.advice[1:]))


def _same(top: Finding, other: Finding) -> bool:
    """The same action removes both: launches that are the optimizer's."""
    return bool(top.advice) and top.advice[0] in other.advice[0]
