"""Collectives over the ranks of a job, step by step: transfer, waiting, and who came late.

Of one collective the shortest time over its ranks is the transfer; what another rank has on top is
waiting, and the rank with the shortest is the one that the others wait for. On two H200s that named
the rank in each of five jobs, and kineto's kernel times agree (transfer 8.13 against 8.16 ms a
step). Where the host itself waits in a collective (gloo), the moments of issuing it stand in: all
wait from their own until the last one's, and the transfer is not known. A host that only queues its
collectives (NCCL) runs ahead by many steps, so what was made before timing was on tells nothing.

A collective is of one process group: all ranks, or those that share a tensor, a shard, a metric.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ...messages import DdpTimes
from .matching import HOSTS_WAIT, Bounds, Collective, Key, by_key, by_step, members_of
from .waits import Times, at_the_latest, by_duration, by_issue, by_least, margins, spans, union_ns


class StepExchange(msgspec.Struct, frozen=True, array_like=True):
    """The collectives of one step, as recordings hold them. Sequences are by rank, in the order of
    the job's ranks here."""

    number: int
    wall_ns: int
    collectives: int
    """Of a rank, as those below: means over them, where process groups differ."""
    bytes: int
    transfer_ns: int | None
    waiting_ns: tuple[int, ...]
    """What each rank waited for later ones."""
    late_ns: tuple[int, ...]
    """What all others waited for each at the least: less the wait for the next latest."""
    ahead_ns: tuple[int, ...] = ()
    """How much earlier each host issued the step's last collective of all ranks than the last host
    did; empty without one, and in older recordings."""
    node_late_ns: tuple[int, ...] = ()
    """The same by host, in the order of `hosts_of`: what the ranks of all others waited for all
    ranks of one. Empty where the ranks are on one host; 0 where some collectives are not of all
    ranks: in a pipeline a whole host waits less, and is not late."""


class RankDdp(msgspec.Struct, frozen=True, array_like=True):
    """What the DistributedDataParallel of a rank measured in one iteration by itself."""

    rank: int
    times: DdpTimes


class CollectiveKind(msgspec.Struct, frozen=True, array_like=True):
    """Entries of one name in a flight recorder."""

    name: str
    entries: int
    done: int
    timed: int


def hosts_of(hosts: Iterable[str]) -> tuple[str, ...]:
    """Each host once, in the order of its first rank."""
    return tuple(dict.fromkeys(hosts))


class Fabric(msgspec.Struct, frozen=True, array_like=True):
    """How fast the collectives of one reading moved their data, by the shortest of each."""

    bytes: int
    shortest_ns: int
    at_best_ns: int
    """The same at the highest rate that collectives of their name reach here."""


FEWEST_ALIKE: Final = 5
"""Collectives of one name and size whose rate counts…"""
FAST_PART: Final = 0.3
"""…of those the one that so many are faster than: a few set no rate."""


def fabric_of(of_ranks: Mapping[int, Sequence[Collective]]) -> Fabric | None:
    """Of the lowest rank's collectives, those that all ranks of their group have timed; None
    without any."""
    known = by_key(of_ranks)
    if len(known) < 2:
        return None
    members = members_of(known)
    by_kind: dict[tuple[tuple[str, str], int], list[int]] = {}
    for key, one in known[0].items():
        parts = [part for at in members[key[0]] if (part := known[at].get(key)) is not None]
        durations = [part.duration_ns for part in parts]
        timed = [ns for ns in durations if ns is not None and ns > 0]
        if one.bytes > 0 and len(timed) == len(members[key[0]]) > 1:
            # The links of one group may be faster than those of another.
            by_kind.setdefault(((one.group, one.name), one.bytes), []).append(min(timed))
    if not by_kind:
        return None
    best: dict[tuple[str, str], float] = {}
    for (name, size), row in by_kind.items():
        if len(row) >= FEWEST_ALIKE:
            rate = size / sorted(row)[int(FAST_PART * len(row))]
            best[name] = max(best.get(name, 0.0), rate)
    at_best = sum(
        min(sum(row), len(row) * size / best[name]) if name in best else sum(row)
        for (name, size), row in by_kind.items()
    )
    moved = sum(len(row) * size for (_, size), row in by_kind.items())
    return Fabric(moved, sum(map(sum, by_kind.values())), round(at_best))


TIMED: Final = 0.25
"""Of a step's collectives, those that must have been timed on all ranks: what was not is left out,
and none is made up for it."""


def exchanges(
    of_ranks: Mapping[int, Sequence[Collective]],
    steps: Sequence[Bounds],
    hosts: Mapping[int, str] | None = None,
    errors_ns: Mapping[str, int] | None = None,
) -> tuple[StepExchange, ...]:
    """The steps, oldest first, whose collectives are known on every rank that takes part in them.
    `hosts`: of each rank, where they are on several; `errors_ns`: by how much the clock of each may
    be off the others'.

    `steps` are those of the lowest rank: a collective belongs to the step in which that issued it.
    A step in which one rank has more or other collectives than others of its process group is left
    out: the recorder has overwritten some. So are the newest, of which some have not ended. What a
    rank waited may be longer than the step: one that saves before its step ends holds up the
    collectives of the next.
    """
    ranks = sorted(of_ranks)
    if len(ranks) < 2:
        return ()
    nodes = _nodes([(hosts or {}).get(rank, "") for rank in ranks], errors_ns or {})
    known = by_key(of_ranks)
    members = members_of(known)
    whole_from = max(min((one.created_ns for one in each.values()), default=0) for each in known)
    whole_until = min(
        max((one.created_ns for one in each.values() if one.done), default=0) for each in known
    )
    made: list[StepExchange] = []
    for step, keys in zip(steps, by_step(known, members, steps), strict=True):
        own_ns = [known[0][key].created_ns for key in keys if key in known[0]]
        if not own_ns or step.start_ns < whole_from or max(own_ns) > whole_until:
            continue
        rows = _rows(keys, known, members)
        found = None if rows is None else _exchange(step, rows, len(ranks), nodes)
        if found is not None:
            made.append(found)
    return tuple(made)


class _Nodes(NamedTuple):
    """Several hosts that ranks are on."""

    places: list[list[int]]
    """Of the ranks of each."""
    of: list[int]
    """By place, which host it is on."""
    errors_ns: list[int]


def _nodes(hosts: Sequence[str], errors_ns: Mapping[str, int]) -> _Nodes | None:
    """None where all are on one."""
    every = hosts_of(hosts)
    if len(every) < 2:
        return None
    of = [every.index(host) for host in hosts]
    places = [[at for at, one in enumerate(of) if one == node] for node in range(len(every))]
    return _Nodes(places, of, [errors_ns.get(host, 0) for host in every])


class _Row(NamedTuple):
    """One collective: the places of the ranks that take part, and the part of each."""

    places: Sequence[int]
    parts: Sequence[Collective]


def _rows(
    keys: Iterable[Key],
    known: Sequence[Mapping[Key, Collective]],
    members: Mapping[str, Sequence[int]],
) -> list[_Row] | None:
    """Those that several ranks have; None where one of the group lacks one of these."""
    rows = []
    for key in keys:
        places = members[key[0]]
        parts = [part for at in places if (part := known[at].get(key)) is not None]
        if len(parts) < 2:
            continue
        if len(parts) < len(places):
            return None
        rows.append(_Row(places, parts))
    return rows


def _exchange(
    step: Bounds, rows: list[_Row], ranks: int, nodes: _Nodes | None
) -> StepExchange | None:
    timed: list[Times] = []
    any_timed = False
    for places, parts in rows:
        durations = [one.duration_ns for one in parts if one.duration_ns is not None]
        any_timed = any_timed or bool(durations)
        if len(durations) == len(parts):
            timed.append((places, durations))
    times = timed if any_timed else _issued(rows, nodes)
    if {at for places, _ in times for at in places} != set(range(ranks)):
        return None  # of a rank that is in none of them it is not known what it waits
    if any_timed:
        if len(timed) < TIMED * len(rows):
            return None
        transfer_ns, waiting, late = by_duration(times, ranks)
    elif not all(parts[0].name.startswith(HOSTS_WAIT) for _, parts in rows):
        return None
    else:
        transfer_ns, waiting, late = by_issue(times, ranks)
    on_hosts = [] if nodes is None else nodes.places
    if any(len(places) < ranks for places, _ in rows):
        late, node_late = by_least(waiting), [0 for _ in on_hosts]
    elif any_timed:
        node_late = [sum(margins(times, own)) for own in on_hosts]
    else:
        node_late = [union_ns(spans(times, own)) for own in on_hosts]
    last_ns = [0] * ranks
    for places, parts in rows:
        if len(places) == ranks:  # a group's own may lie behind the wait for a late rank
            last_ns = [max(ns, one.created_ns) for ns, one in zip(last_ns, parts, strict=True)]
    return StepExchange(
        number=step.number,
        wall_ns=step.end_ns - step.start_ns,
        collectives=sum(len(parts) for _, parts in rows) // ranks,
        bytes=sum(len(parts) * parts[0].bytes for _, parts in rows) // ranks,
        transfer_ns=transfer_ns,
        waiting_ns=tuple(waiting),
        late_ns=tuple(late),
        ahead_ns=tuple(max(last_ns) - ns for ns in last_ns) if all(last_ns) else (),
        node_late_ns=tuple(node_late),
    )


def _issued(rows: Iterable[_Row], nodes: _Nodes | None) -> list[Times]:
    moments: list[Times] = [(places, [one.created_ns for one in parts]) for places, parts in rows]
    if nodes is None or not any(nodes.errors_ns):
        return moments
    return [at_the_latest(row, nodes.of, nodes.errors_ns) for row in moments]
