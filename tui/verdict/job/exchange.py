"""Collectives over the ranks of a job, step by step: transfer, waiting, and who came late.

Of one collective the shortest time over its ranks is the transfer; what another rank has on top is
waiting, and the rank with the shortest is the one that the others wait for. On two H200s that named
the rank in each of five jobs, and kineto's kernel times agree (transfer 8.13 against 8.16 ms a
step). Where the host itself waits in a collective (gloo), the moments of issuing it stand in: all
wait from their own until the last one's, and the transfer is not known. A host that only queues its
collectives (NCCL) runs ahead by many steps, so what was made before timing was on tells nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from ...messages import DdpTimes


@dataclass(frozen=True, slots=True)
class Collective:
    """One rank's part in one collective."""

    group: str
    number: int
    """Within the group, the same on every rank."""
    name: str
    bytes: int
    created_ns: int
    """When the host issued it, perf_counter_ns."""
    duration_ns: int | None
    """On the device; None where it was not timed, as one in twenty on H200s that were."""
    done: bool = True


class Bounds(NamedTuple):
    """A step of the rank that steps are counted by."""

    number: int
    start_ns: int
    end_ns: int


class StepExchange(msgspec.Struct, frozen=True, array_like=True):
    """The collectives of one step, as recordings hold them. Sequences are by rank, in the order of
    the job's ranks here."""

    number: int
    wall_ns: int
    collectives: int
    bytes: int
    transfer_ns: int | None
    waiting_ns: tuple[int, ...]
    """What each rank waited for later ones."""
    late_ns: tuple[int, ...]
    """What all others waited for each at the least: less the wait for the next latest."""
    ahead_ns: tuple[int, ...] = ()
    """How much earlier each host issued the step's last collective than the last host did; empty in
    older recordings."""
    node_late_ns: tuple[int, ...] = ()
    """The same by host, in the order of `hosts_of`: what the ranks of all others waited for all
    ranks of one. Empty where the ranks are on one host."""


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
    """Of the collectives that all ranks have timed; None without any."""
    known = [_by_key(entries) for entries in of_ranks.values()]
    if len(known) < 2:
        return None
    by_kind: dict[tuple[str, int], list[int]] = {}
    for key, one in known[0].items():
        durations = [found.duration_ns for each in known if (found := each.get(key)) is not None]
        timed = [ns for ns in durations if ns is not None and ns > 0]
        if one.bytes > 0 and len(timed) == len(known):
            by_kind.setdefault((one.name, one.bytes), []).append(min(timed))
    if not by_kind:
        return None
    best: dict[str, float] = {}
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


HOSTS_WAIT: Final = "gloo:"
"""How the names of collectives begin that the host waits in."""
Key = tuple[str, int, int]
TIMED: Final = 0.25
"""Of a step's collectives, those that must have been timed on all ranks: what was not is left out,
and none is made up for it."""


def exchanges(
    of_ranks: Mapping[int, Sequence[Collective]],
    steps: Sequence[Bounds],
    hosts: Mapping[int, str] | None = None,
) -> tuple[StepExchange, ...]:
    """The steps, oldest first, whose collectives are known on every rank. `hosts`: of each rank,
    where they are on several.

    `steps` are those of the lowest rank: a collective belongs to the step in which that issued it.
    A step in which one rank has more or other collectives than another is left out: the recorder
    has overwritten some. So are the newest, of which some have not ended. What a rank waited may be
    longer than the step: one that saves before its step ends holds up the collectives of the next.
    """
    ranks = sorted(of_ranks)
    if len(ranks) < 2:
        return ()
    nodes = _nodes([(hosts or {}).get(rank, "") for rank in ranks])
    known = {rank: _by_key(of_ranks[rank]) for rank in ranks}
    first = sorted(known[ranks[0]].items(), key=lambda one: one[1].created_ns)
    whole_from = max(
        min((one.created_ns for one in known[rank].values()), default=0) for rank in ranks
    )
    whole_until = min(
        max((one.created_ns for one in known[rank].values() if one.done), default=0)
        for rank in ranks
    )
    made: list[StepExchange] = []
    at = 0
    for step in steps:
        while at < len(first) and first[at][1].created_ns < step.start_ns:
            at += 1
        end = at
        while end < len(first) and first[end][1].created_ns < step.end_ns:
            end += 1
        keys, at = [key for key, _ in first[at:end]], end
        if not keys or step.start_ns < whole_from or first[end - 1][1].created_ns > whole_until:
            continue
        rows = [[known[rank].get(key) for rank in ranks] for key in keys]
        found = _exchange(step, rows, nodes)
        if found is not None:
            made.append(found)
    return tuple(made)


def _nodes(hosts: Sequence[str]) -> list[list[int]]:
    """Places of each host's ranks; [] where all are on one."""
    every = hosts_of(hosts)
    if len(every) < 2:
        return []
    return [[at for at, one in enumerate(hosts) if one == host] for host in every]


def _by_key(collectives: Iterable[Collective]) -> dict[Key, Collective]:
    """A number that comes again within a group (a coalesced collective) is counted."""
    found: dict[Key, Collective] = {}
    for one in collectives:
        again = 0
        while (one.group, one.number, again) in found:
            again += 1
        found[one.group, one.number, again] = one
    return found


def _exchange(
    step: Bounds, rows: list[list[Collective | None]], nodes: list[list[int]]
) -> StepExchange | None:
    shared = [whole for row in rows if len(whole := [one for one in row if one is not None]) > 1]
    if not shared or any(len(whole) != len(shared[0]) for whole in shared):
        return None
    if any(len(whole) != len(rows[0]) for whole in shared):
        return None
    durations = [[one.duration_ns for one in whole] for whole in shared]
    timed = [[ns for ns in row if ns is not None] for row in durations if None not in row]
    if any(ns is not None for row in durations for ns in row):
        if len(timed) < TIMED * len(shared):
            return None
        transfer_ns, waiting, late = _by_duration(timed)
        node_late = [sum(_margins(timed, own)) for own in nodes]
    elif not all(whole[0].name.startswith(HOSTS_WAIT) for whole in shared):
        return None
    else:
        issued = [[one.created_ns for one in whole] for whole in shared]
        transfer_ns, waiting, late = _by_issue(issued)
        node_late = [_union_ns(_spans(issued, own)) for own in nodes]
    last_ns = [one.created_ns for one in shared[-1]]
    return StepExchange(
        number=step.number,
        wall_ns=step.end_ns - step.start_ns,
        collectives=len(shared),
        bytes=sum(whole[0].bytes for whole in shared),
        transfer_ns=transfer_ns,
        waiting_ns=tuple(waiting),
        late_ns=tuple(late),
        ahead_ns=tuple(max(last_ns) - ns for ns in last_ns),
        node_late_ns=tuple(node_late),
    )


def _by_duration(rows: list[list[int]]) -> tuple[int | None, list[int], list[int]]:
    transfer_ns, waiting, late = 0, [0] * len(rows[0]), [0] * len(rows[0])
    for row in rows:
        shortest, second = sorted(row)[:2]
        transfer_ns += shortest
        late[row.index(shortest)] += second - shortest
        for at, ns in enumerate(row):
            waiting[at] += ns - shortest
    return transfer_ns, waiting, late


def _margins(rows: list[list[int]], own: list[int]) -> Iterable[int]:
    """Of each collective by how much the shortest of all other hosts' ranks is longer than the
    longest of this one's: a single late rank of it does not count."""
    mine = set(own)
    for row in rows:
        others = min(ns for at, ns in enumerate(row) if at not in mine)
        yield max(0, others - max(row[at] for at in own))


def _spans(rows: list[list[int]], own: list[int]) -> Iterable[tuple[int, int]]:
    """The same by the moments of issuing: from the last of the others' to the first of its own."""
    mine = set(own)
    for row in rows:
        others = max(ns for at, ns in enumerate(row) if at not in mine)
        yield others, max(others, min(row[at] for at in own))


def _by_issue(rows: list[list[int]]) -> tuple[int | None, list[int], list[int]]:
    """Unions over time: a wait for a late rank spans all collectives that it is late for."""
    ranks = range(len(rows[0]))
    waits: list[list[tuple[int, int]]] = [[] for _ in ranks]
    lates: list[list[tuple[int, int]]] = [[] for _ in ranks]
    for row in rows:
        second, last = sorted(row)[-2:]
        lates[row.index(last)].append((second, last))
        for at, ns in enumerate(row):
            waits[at].append((ns, last))
    return None, [_union_ns(spans) for spans in waits], [_union_ns(spans) for spans in lates]


def _union_ns(spans: Iterable[tuple[int, int]]) -> int:
    whole, until = 0, 0
    for start, end in sorted(spans):
        whole += max(0, end - max(start, until))
        until = max(until, end)
    return whole
