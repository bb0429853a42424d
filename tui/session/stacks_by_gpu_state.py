"""The last minute's stacks, sorted by what the GPU did at the moment of each sample."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final, Literal, NamedTuple

from msgspec import structs

from ..model.observations import StackCount, StacksSeen
from ..model.stack_shares import summarise
from ..model.stack_trees import Merged, SortedBy, StacksOf, StackTrees, Tree
from ..steps import GpuStep, Step
from ..verdict.thresholds.samples import BUSY_FROM, IDLE_BELOW, MOMENT_NS
from ..verdict.window_selection import warm_after
from .gpu import GpuStore
from .gpu_steps import GpuStepStore
from .stack_phases.classify import MomentBits, phase_of
from .stack_samples import SPACING_NS
from .stacks import StackStore, branches_of
from .step_profile import ProfileSample
from .steps import RECENT_ROWS, StepStore

# When the GPU was idle and when it was busy, as far as anything shows it.

GpuState = Literal["idle", "busy"]


class GpuInterval(NamedTuple):
    """Idle, or busy, all through."""

    start_ns: int
    end_ns: int
    state: GpuState


class Idleness:
    """Stretches that do not overlap, in time order; and readings, each a mean over its time."""

    def __init__(self, intervals: Sequence[GpuInterval], readings: Sequence[ProfileSample]) -> None:
        self._intervals = intervals
        self._readings = readings

    def during(self, start_ns: int, end_ns: int) -> GpuState | None:
        """What it was all through, including as much on both sides as moments are uncertain; None
        where it changed, or where nobody knows."""
        start_ns, end_ns = start_ns - MOMENT_NS, end_ns + MOMENT_NS
        return self._of_intervals(start_ns, end_ns) or self._of_readings(start_ns, end_ns)

    def _of_intervals(self, start_ns: int, end_ns: int) -> GpuState | None:
        at = bisect_left(self._intervals, end_ns, key=lambda interval: interval.end_ns)
        if at == len(self._intervals) or self._intervals[at].start_ns > start_ns:
            return None
        return self._intervals[at].state

    def _of_readings(self, start_ns: int, end_ns: int) -> GpuState | None:
        at = bisect_left(self._readings, start_ns, key=lambda reading: reading.end_ns)
        states = set()
        reached_ns = start_ns
        for reading in self._readings[at:]:
            if reading.start_ns > reached_ns + MOMENT_NS or reached_ns >= end_ns:
                break
            states.add(state_of(reading.value))
            reached_ns = reading.end_ns
        return states.pop() if len(states) == 1 and reached_ns >= end_ns else None


def state_of(percent: float) -> GpuState | None:
    """What a reading says of every moment in it; None: now this, now that."""
    if percent < IDLE_BELOW:
        return "idle"
    return "busy" if percent >= BUSY_FROM else None


def waits_on_gpu(rows: Sequence[GpuStep], steps: Sequence[Step]) -> list[GpuInterval]:
    """Where the GPU's own clock saw it wait for data: at the start of the steps that were measured
    and have one fetch. Of several nobody knows when the others were."""
    simple = {step.start_ns for step in steps if _is_simple(step)}
    return [
        GpuInterval(row.gpu_start_ns, row.gpu_start_ns + row.exposed_ns, "idle")
        for row in rows
        if row.start_ns in simple and row.exposed_ns and row.uncertain_ns is not None
    ]


def waits_on_host(steps: Sequence[Step]) -> list[GpuInterval]:
    """Where the steps that have one fetch waited for data, and where they did not."""
    intervals: list[GpuInterval] = []
    for step in filter(_is_simple, steps):
        until_ns = step.start_ns + step.startup_ns + step.data_ns
        intervals.append(GpuInterval(step.start_ns, until_ns, "idle"))
        intervals.append(GpuInterval(until_ns, step.end_ns, "busy"))
    return intervals


def _is_simple(step: Step) -> bool:
    return step.count == 1 and step.fetches == 1


SETTLED_NS: Final = 3_000_000_000
"""What the GPU did at a moment is known by then: its counters come 0.1 s late, its clock as late as
the GPU runs behind."""
ROLES: Final = {"main": "main", "worker": "workers", "pin": "pin"}


@dataclass(frozen=True, slots=True)
class _Sorting:
    """Bits of a chunk's moments."""

    idle: int
    busy: int
    settled: bool


class WarmUp(NamedTuple):
    """Of a training, perf_counter_ns."""

    start_ns: int
    """Where the first step that is known began; 0 before there is one."""
    end_ns: int
    """Of its last step, or that start while none is known to be."""


NONE: Final = WarmUp(0, 0)


class WarmUpStore:
    """The warm-up as far as it is known. Of a run that was warm before it was watched it ends where
    the first step that is known begins."""

    def __init__(self) -> None:
        self.known = NONE
        self._is_over = False
        self._is_final = False
        """A training's. Behind an evaluation with which it begins another one may follow."""

    @property
    def over_ns(self) -> int | None:
        """When it ended; None while it may go on."""
        return self.known.end_ns if self._is_over else None

    def update(self, steps: StepStore) -> WarmUp:
        """With what is held of the steps now."""
        rows = () if self._is_final else steps.last(RECENT_ROWS)
        if not rows:
            return self.known
        last = warm_after(rows)
        first_ns = self.known.start_ns or rows[0].start_ns
        warm_ns = [row.end_ns for row in rows if row.number <= last]
        self.known = WarmUp(first_ns, max(first_ns, *warm_ns) if warm_ns else first_ns)
        self._is_over = rows[-1].number > last
        self._is_final = self._is_over and not rows[-1].inference
        return self.known


class SortedStacks:
    """Sorts what one store holds by what the others do."""

    def __init__(
        self, stacks: StackStore, gpus: GpuStore, on_gpu: GpuStepStore, steps: StepStore
    ) -> None:
        self._stacks = stacks
        self._gpus = gpus
        self._on_gpu = on_gpu
        self._steps = steps
        self._sorted_by: SortedBy = "none"
        self._sorted: dict[int, _Sorting] = {}
        """By the chunk's `started_ns`."""
        self._made: StackTrees | None = None
        self._made_of: tuple[object, ...] = ()

    def merged(
        self, now_ns: int, apart: Collection[int], warm_up: WarmUp = NONE
    ) -> StackTrees | None:
        """The trees, without the workers of these pids; None without a sample. The same object as
        before while nothing has changed."""
        chunks = self._stacks.chunks
        sorted_by = self._find_sorting()
        if sorted_by != self._sorted_by:
            self._sorted_by = sorted_by
            self._sorted.clear()
        self._sort(chunks, now_ns)
        key = (sorted_by, frozenset(apart), warm_up, tuple(self._sorted.items()))
        if key != self._made_of:
            self._made_of = key
            self._made = self._make(chunks, apart, warm_up)
        return self._made

    def _find_sorting(self) -> SortedBy:
        if self._gpus.newest() or self._on_gpu.recent:
            return "gpu"
        return "host" if self._steps.newest is not None else "none"

    def _sort(self, chunks: Collection[StacksSeen], now_ns: int) -> None:
        before, self._sorted = self._sorted, {}
        idleness: Idleness | None = None
        for chunk in chunks:
            sorting = before.get(chunk.started_ns)
            if sorting is None or not sorting.settled:
                idleness = idleness or self._idleness(chunk.started_ns)
                sorting = sort_chunk(idleness, chunk, now_ns >= chunk.t_ns + SETTLED_NS)
            self._sorted[chunk.started_ns] = sorting

    def _idleness(self, since_ns: int) -> Idleness:
        steps = self._steps.after(since_ns)
        if self._sorted_by == "host":
            return Idleness(waits_on_host(steps), ())
        rows = self._on_gpu.between(steps[0].start_ns, steps[-1].end_ns) if steps else ()
        return Idleness(waits_on_gpu(rows, steps), self._gpus.busy_since(since_ns))

    def _make(
        self, chunks: Collection[StacksSeen], apart: Collection[int], warm_up: WarmUp
    ) -> StackTrees | None:
        every: list[StackCount] = []
        idle: list[StackCount] = []
        busy: list[StackCount] = []
        bits = MomentBits(SPACING_NS)
        for chunk in chunks:
            sorting = self._sorted[chunk.started_ns]
            kept = [one for one in chunk.stacks if one.role != "worker" or one.pid not in apart]
            if chunk.started_ns < warm_up.end_ns:
                kept = _of_steps(kept, chunk, warm_up)
            at = bits.place([chunk.started_ns + ms * 1_000_000 for ms in chunk.moments_ms])
            every += _placed(kept, at)
            idle += _placed(_only(kept, sorting.idle), at)
            busy += _placed(_only(kept, sorting.busy), at)
        if not every:
            return None
        timed = any(chunk.moments_ms for chunk in chunks)
        threads = threads_of(chunks, apart)
        parts = (stacks_of(kept, threads) for kept in (every, idle, busy))
        return StackTrees(self._sorted_by, timed, *parts)


def _of_steps(stacks: Sequence[StackCount], chunk: StacksSeen, warm_up: WarmUp) -> list[StackCount]:
    """What the training thread did before is no part of the time that steps take: it read the data,
    built the net, chose kernels. Its workers make the first batches before the first step, and wait
    while it warms up. Where nobody knows a sample's moment a chunk belongs to what holds most of
    it."""
    beside = [one for one in stacks if one.role != "main"]
    main = [one for one in stacks if one.role == "main"]
    if chunk.moments_ms:
        moments = [chunk.started_ns + at_ms * 1_000_000 for at_ms in chunk.moments_ms]
        since = sum(1 << i for i, at_ns in enumerate(moments) if at_ns >= warm_up.end_ns)
        before = sum(1 << i for i, at_ns in enumerate(moments) if at_ns < warm_up.start_ns)
        return [*_only(main, since), *_only(beside, before | since)]
    middle_ns = (chunk.started_ns + chunk.t_ns) // 2
    if middle_ns > warm_up.end_ns:
        return [*main, *beside]
    return beside if middle_ns < warm_up.start_ns else []


def sort_chunk(idleness: Idleness, chunk: StacksSeen, settled: bool) -> _Sorting:
    """At which of a chunk's moments it was idle, and at which busy.

    Of a moment at which nothing had changed the time is an estimate. It counts where the GPU had
    been the same since the seen moment before it.
    """
    bits: dict[GpuState | None, int] = {"idle": 0, "busy": 0, None: 0}
    seen_ns = 0
    for index, moment_ms in enumerate(chunk.moments_ms):
        at_ns = chunk.started_ns + moment_ms * 1_000_000
        if chunk.seen >> index & 1:
            seen_ns = at_ns
        bits[idleness.during(seen_ns, at_ns)] |= 1 << index
    return _Sorting(bits["idle"], bits["busy"], settled)


def _only(stacks: Iterable[StackCount], moments: int) -> list[StackCount]:
    return [
        structs.replace(stack, count=kept.bit_count(), moments=kept)
        for stack in stacks
        if (kept := stack.moments & moments)
    ]


def _placed(stacks: Iterable[StackCount], at: int) -> list[StackCount]:
    """With the moments of the main thread's as bits of all chunks, the first of theirs at `at`."""
    return [
        structs.replace(one, moments=one.moments << at if one.role == "main" else 0)
        for one in stacks
    ]


def threads_of(chunks: Iterable[StacksSeen], apart: Collection[int]) -> dict[str, int]:
    """How many threads of each role are sampled at a time: each epoch has workers of its own."""
    counts: dict[str, list[int]] = {}
    for chunk in chunks:
        seen = {
            (ROLES[one.role], one.pid, one.thread)
            for one in chunk.stacks
            if one.role in ROLES and (one.role != "worker" or one.pid not in apart)
        }
        threads = Counter(role for role, _, _ in seen)
        if chunk.among and threads[ROLES["worker"]]:
            threads[ROLES["worker"]] = sum(pid not in apart for pid in chunk.among)
        for role, count in threads.items():
            counts.setdefault(role, []).append(count)
    return {role: median_low(each) for role, each in counts.items()}


def stacks_of(stacks: Collection[StackCount], threads: Mapping[str, int]) -> StacksOf:
    """Summed up, merged, and as trees; `threads` by role."""
    counts: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    for stack in stacks:
        if (role := ROLES.get(stack.role)) is not None:
            counts[role, stack.frames, stack.line] += stack.count
    merged = tuple(Merged(role, frames, n, line) for (role, frames, line), n in counts.items())
    trees = []
    for role in ROLES.values():
        own = [one for one in merged if one.role == role]
        if own:
            samples = sum(one.samples for one in own)
            trees.append(Tree(role, threads[role], samples, branches_of(own)))
    return StacksOf(summarise(stacks, phase_of), tuple(trees), merged)
