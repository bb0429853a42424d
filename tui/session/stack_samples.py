"""A run without a probe: samples of its main thread's stack, sorted into phases."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from msgspec import structs

from ..model.frames import caller_of, in_collective, way_to, worth_naming
from ..model.observations import StackCount, StacksSeen
from ..model.stack_shares import summarise
from ..verdict.code_origin import LOADERS, is_users, where_in
from ..verdict.stack_samples import FrameShare
from ..verdict.statistics import Share, of_moments
from ..verdict.window import SampleSpan
from .stack_phases.classify import (
    Classified,
    MomentBits,
    classify_stack,
    parts_of,
    period_ns,
    phase_of,
)
from .stack_phases.table import PHASES, RUNS_A_NET, StackPhase

SPACING_NS: Final = 100_000_000
"""Between two samples, as `tui.sources.py_spy` takes them."""
SETTLING_NS: Final = 3_000_000_000
"""Of a training that was seen to begin, the first steps: they start workers and choose kernels."""
HOST: Final[frozenset[StackPhase]] = frozenset(("other", "synchronisation"))
LOADING: Final[frozenset[StackPhase]] = frozenset(("data",))
WAITING: Final[frozenset[StackPhase]] = frozenset(("waiting",))


class Sample(NamedTuple):
    """The main thread at one moment."""

    t_ns: int
    stack: StackCount
    classified: Classified


@dataclass(frozen=True, slots=True)
class Unmoved:
    """The newest samples in a row that find the main thread at the same line of the user's."""

    since_ns: int
    stack: StackCount
    phase: StackPhase

    @property
    def frame(self) -> str:
        """Where it is."""
        return worth_naming(self.stack.frames)

    @property
    def way(self) -> tuple[str, ...]:
        """How it came there."""
        return way_to(self.stack.frames)


class StackSampleStore:
    """The last minute's. A chunk is sorted once."""

    def __init__(self) -> None:
        self._chunks: dict[int, tuple[Sample, ...]] = {}
        """By `StacksSeen.started_ns`."""
        self._begun_ns: int | None = None
        """Where the training began, as far as samples show."""
        self.trains = False
        """A backward was seen: what evaluates is no inference then."""
        self._unmoved_since_ns: int | None = None
        self._unmoved: tuple[str, StackPhase] | None = None
        self._newest_ns = 0
        self.spans: tuple[SampleSpan, ...] = ()
        """One for each sample of the training, oldest first."""
        self._kept: list[Sample] = []
        self._bits: list[int] = []
        """Of each of them one, as in `Stacks.taken`."""
        self._taken = 0

    def update(self, chunks: Collection[StacksSeen]) -> None:
        """Take what is new among the chunks of the last minute, oldest first."""
        before = self._chunks
        self._chunks = {
            chunk.started_ns: before.get(chunk.started_ns) or samples_of(chunk) for chunk in chunks
        }
        if self._chunks.keys() == before.keys():
            return
        for started_ns, samples in self._chunks.items():
            if started_ns not in before:
                self._follow(samples)
        begun_ns = self._begun_ns
        every = [sample for samples in self._chunks.values() for sample in samples]
        self._kept = [
            sample
            for sample in every
            if begun_ns is not None
            and sample.t_ns >= begun_ns
            and (sample.classified.phase != "starting")
        ]
        bits = MomentBits(SPACING_NS)
        self._bits = [1 << bits.place((sample.t_ns,)) for sample in self._kept]
        self._taken = sum(self._bits)
        self.spans = tuple(
            SampleSpan(sample.t_ns - SPACING_NS, sample.t_ns, self._phase(sample))
            for sample in self._kept
        )

    def shares(self, gpu_present: bool) -> dict[StackPhase, Share]:
        """Of each phase, with its interval."""
        held: dict[StackPhase, int] = dict.fromkeys(PHASES, 0)
        for sample, bit in zip(self._kept, self._bits, strict=True):
            held[self._shown(sample, gpu_present)] |= bit
        return {phase: of_moments(bits, self._taken) for phase, bits in held.items()}

    @property
    def serial(self) -> float:
        """Part of the samples in which the training thread makes a batch itself."""
        own = sum(
            sample.classified.serial and not sample.classified.evaluates for sample in self._kept
        )
        return own / len(self._kept) if self._kept else 0.0

    def places(self, phases: frozenset[StackPhase], gpu_present: bool) -> tuple[FrameShare, ...]:
        """Where it was in these phases; shares are of all samples."""
        own = [
            structs.replace(one.stack, count=1, moments=bit)
            for one, bit in zip(self._kept, self._bits, strict=True)
            if self._shown(one, gpu_present) in phases
        ]
        if not own:
            return ()
        part = len(own) / len(self._kept)
        places = summarise(own, phase_of).main
        return tuple(
            replace(place, share=place.share * part, samples=len(self._kept)) for place in places
        )

    def period_ns(self) -> float | None:
        """Estimate of a step."""
        moments = [(sample.t_ns, self._phase(sample)) for sample in self._kept]
        return period_ns(moments, SPACING_NS)

    def unmoved(self) -> Unmoved | None:
        """Since when the newest sample's line is the only one that was seen."""
        samples = next(reversed(self._chunks.values()), ()) if self._chunks else ()
        if not samples or self._unmoved_since_ns is None:
            return None
        newest = samples[-1]
        phase = newest.classified.phase
        if phase == "waiting" and is_users(where_in(newest.stack.frames[-1])):
            phase = "synchronisation"  # `work.wait()`, in C, for other ranks: no wait for work
        return Unmoved(self._unmoved_since_ns, newest.stack, phase)

    def _follow(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            phase = sample.classified.phase
            self.trains = self.trains or phase == "backward"
            where = (caller_of(sample.stack.frames, "") or sample.stack.frames[-1], phase)
            if where != self._unmoved:
                self._unmoved, self._unmoved_since_ns = where, sample.t_ns
            if self._begun_ns is None and _is_of_training(sample):
                first = self._newest_ns == 0
                self._begun_ns = sample.t_ns + (0 if first else SETTLING_NS)
            self._newest_ns = sample.t_ns

    def _shown(self, sample: Sample, gpu_present: bool) -> StackPhase:
        """Without a GPU a line that would wait for one is Python like any other, and what waits for
        other ranks does no more than that."""
        phase = self._phase(sample)
        if phase != "synchronisation" or gpu_present:
            return phase
        return "waiting" if in_collective(sample.stack.frames) else "other"

    def _phase(self, sample: Sample) -> StackPhase:
        return (
            "evaluation" if self.trains and sample.classified.evaluates else sample.classified.phase
        )


def samples_of(chunk: StacksSeen) -> tuple[Sample, ...]:
    """The main thread's, oldest first."""
    found = []
    for stack in chunk.stacks:
        if stack.role == "main" and stack.frames:
            classified = classify_stack(stack)
            for index, moment_ms in enumerate(chunk.moments_ms):
                if stack.moments >> index & 1:
                    found.append(
                        Sample(chunk.started_ns + moment_ms * 1_000_000, stack, classified)
                    )
    return tuple(sorted(found, key=lambda sample: sample.t_ns))


def _is_of_training(sample: Sample) -> bool:
    """A net runs, gradients are taken, or a loader makes a batch. What prepares a training computes
    too, and reads files; what only looks after others waits for what they report."""
    phase, parts = sample.classified.phase, [parts_of(frame) for frame in sample.stack.frames]
    if phase == "backward" or any(name in RUNS_A_NET for name, _ in parts):
        return True
    return phase == "data" and any(file.startswith(LOADERS) for _, file in parts)
