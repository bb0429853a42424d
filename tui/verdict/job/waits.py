"""What ranks wait for each other in the collectives of a step, and who came late to them: by how
long each took on them, or by when each was issued where the host waits in it."""

from collections.abc import Iterable, Sequence

Times = tuple[Sequence[int], list[int]]
"""Of one collective: the places of the ranks that take part, and of each how long it took there, or
when it was issued."""


def by_least(waiting: Sequence[int]) -> list[int]:
    """What all others waited for each at the least, where not every collective is of all ranks: a
    late rank holds up its own group first, whose others then come late to theirs through no fault
    of their own. Who waits least of all is where that began."""
    least, second = sorted(waiting)[:2]
    return [second - least if ns == least else 0 for ns in waiting]


def by_duration(rows: Iterable[Times], ranks: int) -> tuple[int | None, list[int], list[int]]:
    """The transfer is that of a rank, as a mean over them."""
    transfer_ns, waiting, late = 0, [0] * ranks, [0] * ranks
    for places, row in rows:
        shortest, second = sorted(row)[:2]
        transfer_ns += shortest * len(row)
        late[places[row.index(shortest)]] += second - shortest
        for at, ns in zip(places, row, strict=True):
            waiting[at] += ns - shortest
    return transfer_ns // ranks, waiting, late


def margins(rows: Iterable[Times], own: list[int]) -> Iterable[int]:
    """Of each collective of all ranks by how much the shortest of all other hosts' ranks is longer
    than the longest of this one's: a single late rank of it does not count."""
    mine = set(own)
    for _, row in rows:
        others = min(ns for at, ns in enumerate(row) if at not in mine)
        yield max(0, others - max(row[at] for at in own))


def spans(rows: Iterable[Times], own: list[int]) -> Iterable[tuple[int, int]]:
    """The same by the moments of issuing: from the last of the others' to the first of its own."""
    mine = set(own)
    for _, row in rows:
        others = max(ns for at, ns in enumerate(row) if at not in mine)
        yield others, max(others, min(row[at] for at in own))


def at_the_latest(row: Times, host_of: Sequence[int], errors_ns: Sequence[int]) -> Times:
    """Moments of issuing, by clocks of hosts that may be off by so much: where the last rank is on
    one, those of the others are as late as they may have been. What they wait is then no less."""
    places, moments_ns = row
    last_ns = max(moments_ns)
    latest = host_of[places[moments_ns.index(last_ns)]]
    ends_ns: dict[int, int] = {}
    for at, ns in zip(places, moments_ns, strict=True):
        ends_ns[host_of[at]] = max(ns, ends_ns.get(host_of[at], ns))
    later_ns = {
        host: 0 if host == latest else min(errors_ns[host] + errors_ns[latest], last_ns - end_ns)
        for host, end_ns in ends_ns.items()
    }
    return places, [ns + later_ns[host_of[at]] for at, ns in zip(places, moments_ns, strict=True)]


def by_issue(rows: Iterable[Times], ranks: int) -> tuple[int | None, list[int], list[int]]:
    """Unions over time: a wait for a late rank spans all collectives that it is late for."""
    waits: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    lates: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for places, row in rows:
        second, last = sorted(row)[-2:]
        lates[places[row.index(last)]].append((second, last))
        for at, ns in zip(places, row, strict=True):
            waits[at].append((ns, last))
    return None, [union_ns(row) for row in waits], [union_ns(row) for row in lates]


def union_ns(parts: Iterable[tuple[int, int]]) -> int:
    """How long they are together; what several cover counts once."""
    whole, until = 0, 0
    for start, end in sorted(parts):
        whole += max(0, end - max(start, until))
        until = max(until, end)
    return whole
