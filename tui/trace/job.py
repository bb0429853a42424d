"""The same steps on all ranks of a job, by a profiler's recording on each: what collectives take.

Of one collective the shortest time over its ranks is the transfer, the last part of it on every
rank; what a rank has before that it waits for later ranks. What no kernel hides of either is
exposed: that is what the step would be shorter by. The steps are those that all ranks recorded, by
how many collectives each had issued as a step ended. No clock of one rank is laid beside another's.

A rank on a CPU has no kernels: its collectives are the annotations of their backend ("gloo:…"),
from when a thread of that takes them up until they are done, and what hides them is any operator of
ATen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..verdict.job.matching import Collective
from ..verdict.thresholds.ranks import LATE_STEP
from .collectives import Call, entries_of, on_device, on_host
from .events import read_trace
from .gaps import device_edges
from .profile import Recorded
from .spans import Span, length, minus, union, within


@dataclass(frozen=True, slots=True)
class RankRecorded:
    """One rank's part."""

    rank: int
    recorded: Recorded
    issued: tuple[Mapping[str, int], ...]
    """By process group, how many collectives it had issued at each of the recorded ends."""
    on_device: bool
    entries: tuple[Collective, ...] = ()
    """Of these steps, where the flight recorder has them: a kernel's name has no size."""


@dataclass(frozen=True, slots=True)
class RankShare:
    """What collectives take of one rank's step, ns."""

    rank: int
    step_ns: float
    collectives_ns: float
    exposed_ns: float
    transfer_ns: float | None
    """Exposed: data moves. None where the ranks' collectives are not the same."""
    waiting_ns: float | None
    """Exposed: it waits for later ranks."""
    late_ns: float | None
    """What every other rank waits for this one at the least, exposed."""
    late_in: int = 0
    """Steps in which it was the last by so much that it matters."""

    @property
    def late(self) -> float:
        """`late_ns` as a part of the step."""
        return (self.late_ns or 0.0) / self.step_ns


@dataclass(frozen=True, slots=True)
class CollectiveSum:
    """Collectives of one kind and size over the steps."""

    kind: str
    """ "all_reduce"."""
    dtype: str
    """ "" where nothing tells it."""
    bytes: int | None
    """That a rank gives into one; None where nothing tells it."""
    a_step: float
    transfer_ns: float
    """A step: the shortest of each."""
    waiting_ns: float
    """A step, on average over the ranks: what they have on top."""
    exposed_ns: float
    """A step, on average over the ranks: of both."""


@dataclass(frozen=True, slots=True)
class JobProfile:
    """What the recordings of a job's ranks show together."""

    device: str
    on_device: bool
    steps: int
    step_ns: float
    """Mean over the ranks, while the profiler recorded."""
    ranks: tuple[RankShare, ...]
    collectives: tuple[CollectiveSum, ...]
    """Largest first; empty where the ranks' collectives are not the same."""
    unlike: str
    """Why the ranks' collectives are not the same; "" where they are."""

    @property
    def exposed(self) -> float:
        """Part of a step, on average over the ranks, in which collectives stand alone."""
        return sum(one.exposed_ns / one.step_ns for one in self.ranks) / len(self.ranks)

    @property
    def transfer(self) -> float | None:
        """Part of a step in which data moves and nothing hides it: the mean over the ranks."""
        parts = [one.transfer_ns / one.step_ns for one in self.ranks if one.transfer_ns is not None]
        return sum(parts) / len(parts) if parts else None

    @property
    def waiting(self) -> float | None:
        """Part of a step that a rank waits for later ones: the mean over the ranks."""
        parts = [one.waiting_ns / one.step_ns for one in self.ranks if one.waiting_ns is not None]
        return sum(parts) / len(parts) if parts else None

    @property
    def latest(self) -> RankShare | None:
        """The rank that all others wait for longest; None: nobody, or that is not known."""
        known = [one for one in self.ranks if one.late_ns]
        return max(known, key=lambda one: one.late, default=None)


class NoCommonStepsError(ValueError):
    """The ranks recorded no step in common."""


def job_profile_of(ranks: Sequence[RankRecorded]) -> JobProfile:
    """Raises ValueError for a trace that is malformed, NoCommonStepsError where no step was
    recorded on all ranks."""
    group, low, high = _common(ranks)
    read = [_rank_calls(one, group, low, high) for one in ranks]
    matched, unlike = _matched(read)
    step_ns = sum((one.end_ns - one.start_ns) / one.steps for one in read) / len(read)
    return JobProfile(
        device=next((one.device for one in read if one.device), ""),
        on_device=all(one.on_device for one in ranks),
        steps=read[0].steps,
        step_ns=step_ns,
        ranks=tuple(_shares(read, matched)),
        collectives=_summed(read, matched),
        unlike=unlike,
    )


# Which steps all ranks recorded.


def _common(ranks: Sequence[RankRecorded]) -> tuple[str, int, int]:
    """A process group of all ranks, and how many collectives it had issued at the first and at the
    last step's end that all have. The recording's own beginning is no such end: what follows it
    settles. Nor is one before which the step issued none."""
    groups = set.intersection(*[set(each) for one in ranks for each in one.issued])
    best: tuple[int, str, list[int]] | None = None
    for group in sorted(groups):
        ends = [_ends_of(one, group).keys() for one in ranks]
        shared = sorted(set(ends[0]).intersection(*ends[1:]))
        if best is None or len(shared) > best[0]:
            best = len(shared), group, shared
    if best is None:
        raise NoCommonStepsError("the ranks have no process group in common that numbers its calls")
    if best[0] < 2:
        raise NoCommonStepsError("the ranks recorded no step in common")
    return best[1], best[2][0], best[2][-1]


def _ends_of(rank: RankRecorded, group: str) -> dict[int, int]:
    """By the collectives that had been issued, the index of the step's end."""
    counts = [one.get(group, 0) for one in rank.issued]
    return {
        counts[at]: at
        for at in range(1, min(len(counts), len(rank.recorded.ends_ns)))
        if counts[at] > counts[at - 1]
    }


@dataclass(frozen=True, slots=True)
class _RankCalls:
    rank: int
    steps: int
    start_ns: int
    end_ns: int
    calls: tuple[Call, ...]
    """As they were issued."""
    compute: tuple[Span, ...]
    device: str

    def within(self, calls: Iterable[Call]) -> list[Span]:
        """When these were under way in the steps."""
        return within(
            union((one.start_ns, one.end_ns) for one in calls), self.start_ns, self.end_ns
        )


def _rank_calls(rank: RankRecorded, group: str, low: int, high: int) -> _RankCalls:
    ends = _ends_of(rank, group)
    first, last = ends[low], ends[high]
    ends_ns = rank.recorded.ends_ns
    trace = read_trace(rank.recorded.data, rank.recorded.anchor)
    ends_of_steps = ends_ns[first : last + 1]
    if not rank.on_device:
        calls, compute = on_host(trace, ends_of_steps)
        start_ns, end_ns = ends_of_steps[0], ends_of_steps[-1]
    else:
        edges = device_edges(trace, [ends_ns[first - 1], *ends_of_steps])
        if edges is None:
            raise ValueError(f"rank {rank.rank} has no work of its GPU in these steps")
        start_ns, end_ns = edges[0], edges[-1]
        entries = entries_of(rank.entries, rank.issued[first : last + 1])
        calls, compute = on_device(trace, ends_of_steps, entries)
    return _RankCalls(
        rank.rank,
        last - first,
        start_ns,
        end_ns,
        tuple(calls),
        tuple(within(union(compute), start_ns, end_ns)),
        trace.device,
    )


# The same collective on all ranks: transfer and waiting.


Key = tuple[str, str, int | None]
"""Kind, type and bytes of a collective."""


def _matched(ranks: Sequence[_RankCalls]) -> tuple[list[tuple[Call, ...]], str]:
    """The same collective on each rank, by its place among those of its kind, and of its type and
    size where these are known of all; and why they are not the same."""
    every = [call for one in ranks for call in one.calls]
    typed = all(call.dtype for call in every)
    sized = all(call.bytes is not None for call in every)
    by_key: list[Mapping[Key, list[Call]]] = []
    for one in ranks:
        rows: defaultdict[Key, list[Call]] = defaultdict(list)
        for call in one.calls:
            key = call.kind, call.dtype if typed else "", call.bytes if sized else None
            rows[key].append(call)
        by_key.append(rows)
    for rank, theirs in zip(ranks[1:], by_key[1:], strict=True):
        if found := _unlike(by_key[0], theirs):
            own, other, what = found
            return [], f"{what}: {own} on rank {ranks[0].rank}, {other} on rank {rank.rank}"
    return [
        calls for key in by_key[0] for calls in zip(*[rows[key] for rows in by_key], strict=True)
    ], ""


def _unlike(
    one: Mapping[Key, list[Call]], other: Mapping[Key, list[Call]]
) -> tuple[int, int, str] | None:
    """How many of the first kind that they have not alike; None where they have all alike."""
    for key in {**one, **other}:
        counts = len(one.get(key, ())), len(other.get(key, ()))
        if counts[0] != counts[1]:
            kind, dtype, size = key
            named = " ".join(filter(None, (kind or "collective", dtype)))
            return *counts, named if size is None else f"{named} of {size:,} bytes"
    return None


def _shares(ranks: Sequence[_RankCalls], matched: Sequence[tuple[Call, ...]]) -> list[RankShare]:
    """What collectives take of each rank's steps."""
    split = [_split(one, at, matched) for at, one in enumerate(ranks)]
    late_in = _late_in(ranks, matched)
    shares = []
    for at, one in enumerate(ranks):
        own = one.within(one.calls)
        share = RankShare(
            rank=one.rank,
            step_ns=(one.end_ns - one.start_ns) / one.steps,
            collectives_ns=length(own) / one.steps,
            exposed_ns=length(minus(own, one.compute)) / one.steps,
            transfer_ns=None,
            waiting_ns=None,
            late_ns=None,
        )
        if matched:
            others = [theirs.for_ns[at] for place, theirs in enumerate(split) if place != at]
            share = replace(
                share,
                transfer_ns=split[at].transfer_ns / one.steps,
                waiting_ns=sum(split[at].for_ns.values()) / one.steps,
                late_ns=min(others) / one.steps,
                late_in=late_in[at],
            )
        shares.append(share)
    return shares


def _late_in(ranks: Sequence[_RankCalls], matched: Sequence[tuple[Call, ...]]) -> Counter[int]:
    """By place of the rank: steps in which it was the last, as the live verdict counts them."""
    by_step: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for calls in matched:
        took = [call.end_ns - call.start_ns for call in calls]
        shortest, second = sorted(took)[:2]
        by_step[calls[0].step][took.index(shortest)] += second - shortest
    least_ns = LATE_STEP * (ranks[0].end_ns - ranks[0].start_ns) / ranks[0].steps
    most = (max(one.items(), key=lambda row: row[1]) for one in by_step.values())
    return Counter(at for at, ns in most if ns >= least_ns)


class _Split(NamedTuple):
    """What of a rank's collectives nothing hides, ns over the steps."""

    transfer_ns: int
    for_ns: Mapping[int, int]
    """Waiting, by the place of the rank that was the last."""


def _split(rank: _RankCalls, at: int, matched: Sequence[tuple[Call, ...]]) -> _Split:
    transfer: list[Span] = []
    waiting: defaultdict[int, list[Span]] = defaultdict(list)
    for calls in matched:
        took = [call.end_ns - call.start_ns for call in calls]
        shortest, own = min(took), calls[at]
        transfer.append((own.end_ns - shortest, own.end_ns))
        waiting[took.index(shortest)].append((own.start_ns, own.end_ns - shortest))
    moves = within(union(transfer), rank.start_ns, rank.end_ns)
    taken = union([*moves, *rank.compute])
    for_ns: defaultdict[int, int] = defaultdict(int)
    for last, spans in sorted(waiting.items()):
        alone = minus(within(union(spans), rank.start_ns, rank.end_ns), taken)
        for_ns[last] = length(alone)
        taken = union([*taken, *alone])
    return _Split(length(minus(moves, rank.compute)), for_ns)


def _summed(
    ranks: Sequence[_RankCalls], matched: Sequence[tuple[Call, ...]]
) -> tuple[CollectiveSum, ...]:
    """By kind and size."""
    steps = ranks[0].steps
    rows: defaultdict[tuple[str, str, int | None], list[tuple[Call, ...]]] = defaultdict(list)
    for calls in matched:
        known = next((call.bytes for call in calls if call.bytes is not None), None)
        rows[calls[0].kind, calls[0].dtype, known].append(calls)
    found = []
    for (kind, dtype, size), row in rows.items():
        took = [[call.end_ns - call.start_ns for call in calls] for calls in row]
        transfer_ns = sum(map(min, took))
        exposed_ns = sum(
            length(minus(one.within([calls[at] for calls in row]), one.compute))
            for at, one in enumerate(ranks)
        )
        found.append(
            CollectiveSum(
                kind=kind,
                dtype=dtype,
                bytes=size,
                a_step=len(row) / steps,
                transfer_ns=transfer_ns / steps,
                waiting_ns=(sum(map(sum, took)) / len(ranks) - transfer_ns) / steps,
                exposed_ns=exposed_ns / len(ranks) / steps,
            )
        )
    return tuple(sorted(found, key=lambda one: -(one.transfer_ns + one.waiting_ns)))
