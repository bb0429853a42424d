"""The same collective on several ranks, and the step that it belongs to."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple


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


HOSTS_WAIT: Final = "gloo:"
"""How the names of collectives begin that the host waits in."""
Key = tuple[str, int, int]
"""A collective: its group, its number there, and how often that came before."""
WORLD: Final = "0"
"""The first process group, of all ranks, by the name that PyTorch's flight recorder has for it."""


def by_key(of_ranks: Mapping[int, Sequence[Collective]]) -> list[dict[Key, Collective]]:
    """Of each rank, by number. A number that comes again within a group (a coalesced collective) is
    counted; a group that was made anew is another one."""
    anew = _made_anew(of_ranks.values())
    known = []
    for _, collectives in sorted(of_ranks.items()):
        found: dict[Key, Collective] = {}
        for one in collectives:
            group, again = one.group, 0
            if group in anew:
                group += f" made {bisect_right(anew[group], one.created_ns)} times before"
            while (group, one.number, again) in found:
                again += 1
            found[group, one.number, again] = one
        known.append(found)
    return known


def _made_anew(of_ranks: Iterable[Sequence[Collective]]) -> dict[str, list[int]]:
    """When groups were destroyed and made anew, by their numbers, which begin again then. All ranks
    meet for that: what any of them issued before was before that moment, also on one whose recorder
    has it no more."""
    pauses: dict[str, list[tuple[int, int]]] = {}
    for collectives in of_ranks:
        newest: dict[str, Collective] = {}
        for one in collectives:
            before = newest.get(one.group)
            # Two that were issued at once may have been read in the other order.
            if before is not None and one.number <= before.number // 2:
                pauses.setdefault(one.group, []).append((before.created_ns, one.created_ns))
            newest[one.group] = one
    return {group: _moments_in(rows) for group, rows in pauses.items()}


def _moments_in(pauses: Iterable[tuple[int, int]]) -> list[int]:
    """One for those that overlap, within all of them."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(pauses):
        if found and start < found[-1][1]:
            found[-1] = start, min(end, found[-1][1])
        else:
            found.append((start, end))
    return [(start + end) // 2 for start, end in found]


def members_of(known: Sequence[Mapping[Key, Collective]]) -> dict[str, list[int]]:
    """Places of the ranks that have any collective of a group."""
    found: dict[str, list[int]] = {}
    for at, collectives in enumerate(known):
        for group in {group for group, _, _ in collectives}:
            found.setdefault(group, []).append(at)
    return found


def by_step(
    known: Sequence[Mapping[Key, Collective]],
    members: Mapping[str, Sequence[int]],
    steps: Sequence[Bounds],
) -> list[list[Key]]:
    """The collectives of each step: a group's belong to that in which its lowest member issues
    them, where that is the lowest rank, or hosts wait in their collectives."""
    starts_ns = [one.start_ns for one in steps]
    step_of: dict[Key, int] = {}
    until = len(steps)
    for place in sorted({places[0] for places in members.values()}):
        own = sorted(known[place].items(), key=lambda one: one[1].created_ns)
        shared = [at for at, (key, _) in enumerate(own) if members[key[0]][0] < place]
        if place > 0 and not all(one.name.startswith(HOSTS_WAIT) for _, one in own):
            until = min(until, _between(own, shared, step_of))
            continue
        for key, one in own:
            at = bisect_right(starts_ns, one.created_ns) - 1
            if members[key[0]][0] == place and at >= 0 and one.created_ns < steps[at].end_ns:
                step_of[key] = at
    found: list[list[Key]] = [[] for _ in steps]
    for key, at in step_of.items():
        if at < until:
            found[at].append(key)
    return found


def _between(
    own: Sequence[tuple[Key, Collective]], shared: Sequence[int], step_of: dict[Key, int]
) -> int:
    """Find the steps of a rank's collectives by those that it shares with lower ranks, at the
    places `shared`: a host that only queues may be steps ahead of another, but its longest pause
    between two of these is where it waits for its step to end. Returns the first step of which
    some may not be known yet."""
    tail: int | None = None
    for start, end in pairwise(shared):
        moments_ns = [one.created_ns for _, one in own[start : end + 1]]
        pauses_ns = [after - before for before, after in pairwise(moments_ns)]
        ended = start + pauses_ns.index(max(pauses_ns))
        if step_of.get(own[start][0]) != step_of.get(own[end][0]):
            tail = ended - start  # so many came behind the last shared one of the step before
        for at in range(start + 1, end):
            beside = own[start if at <= ended else end][0]
            if beside in step_of:
                step_of[own[at][0]] = step_of[beside]
    for at in reversed(shared):
        if (step := step_of.get(own[at][0])) is not None:
            if at == shared[-1]:
                behind = own[at + 1 :]
                if len(behind) != tail:
                    return step
                step_of.update((key, step) for key, _ in behind)
            return step + 1
    return 0


def issued_in(
    of_ranks: Mapping[int, Sequence[Collective]], steps: Sequence[Bounds]
) -> set[tuple[str, int]]:
    """Groups and numbers of what the ranks of a host issue in these steps of its lowest."""
    known = by_key(of_ranks)
    members = members_of(known)
    return {
        (part.group, part.number)
        for keys in by_step(known, members, steps)
        for key in keys
        for at in members[key[0]]
        if (part := known[at].get(key)) is not None
    }
