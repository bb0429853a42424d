"""Loops of the program whose turns do not need each other: one operation could do them all."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from .operation import NOWHERE, Operation, Step, Work

LEAST_TURNS: Final = 16
"""Fewer are heads, scales, or nets of an ensemble."""
MOST_LINES: Final = 8
"""Lines whose turns are followed through a step: those that take most of it on the host."""
DEEP: Final = 0.25
"""Of its turns: where results go from turn to turn that often, each waits for the one before."""


class Loop(NamedTuple):
    """Of one function, its lines that a loop of independent turns comes by."""

    place: int
    """The line with most of it."""
    ns: int
    host_ns: int
    """With what goes back through them."""
    operations: int
    turns: int


def largest_loop(step: Step) -> Loop | None:
    """The one that takes most of the host's time; None without any."""
    forward: dict[int, list[Operation]] = defaultdict(list)
    host: Counter[int] = Counter()
    for one in step.operations:
        if one.place == NOWHERE or one.work is Work.VIEW:
            continue
        host[one.place] += one.host_ns
        if not one.in_backward:
            forward[one.place].append(one)
    turns = {place: _turns(forward[place]) for place, _ in host.most_common()}
    often = [place for place, _ in host.most_common() if turns[place] >= LEAST_TURNS]
    free = [place for place in often[:MOST_LINES] if _are_independent(step, place, turns[place])]
    functions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place in free:
        functions[step.places[place].file, step.places[place].function].append(place)
    most = max(functions.values(), key=lambda lines: sum(host[each] for each in lines), default=[])
    if not most:
        return None
    inside = [one for one in step.operations if one.place in most]
    return Loop(
        most[0],
        sum(one.ns for one in inside),
        sum(one.host_ns for one in inside),
        len(inside),
        turns[most[0]],
    )


def _turns(operations: Iterable[Operation]) -> int:
    """How often a line is come by: it may ask for one operator several times in a turn, and for
    some in a few turns alone, so that of the usual numbers the smallest counts."""
    counts = Counter(Counter(one.name for one in operations).values())
    usual = max(counts.values(), default=0)
    return min((count for count, names in counts.items() if names == usual), default=0)


def _are_independent(step: Step, place: int, turns: int) -> bool:
    """How many operations of the line lie behind each other: as many as one turn has, where none
    needs what another has made."""
    depths: dict[int, int] = {}
    deepest = 0
    for one in step.operations:
        if one.in_backward:
            continue
        depth = max((depths.get(each.storage, 0) for each in one.reads), default=0)
        if one.place == place and one.work is not Work.VIEW:
            depth += 1
            deepest = max(deepest, depth)
        if depth:
            for storage in {each.storage for each in one.makes} | one.writes:
                depths[storage] = max(depth, depths.get(storage, 0))
    return deepest <= DEEP * turns
