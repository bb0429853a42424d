"""Lines that a step comes by again and again, with operations that do not need each other: one
could do them all."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .operation import NOWHERE, Operation, Step, Work

LEAST_TURNS: Final = 16
"""Fewer are heads, scales, or nets of an ensemble."""
MOST_LINES: Final = 16
"""Lines that are followed through a step: those that take most of it on the host."""
ALIKE: Final = 0.9
"""Of a line's operations, those whose rows have the sizes which most of them have: texts differ in
length, and can be padded."""


class Loop(NamedTuple):
    """Of one function, its lines with operations that do not need each other."""

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
    for one in _before_backward(step):
        forward[one.place].append(one)
    for one in step.operations:
        if one.place != NOWHERE and one.work is not Work.VIEW:
            host[one.place] += one.host_ns
    turns = {place: _turns(forward[place]) for place, _ in host.most_common()}
    often = [place for place, _ in host.most_common() if turns[place] >= LEAST_TURNS]
    free = [
        place
        for place in often[:MOST_LINES]
        if _are_alike(forward[place], turns[place]) and _are_independent(step, place, turns[place])
    ]
    functions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place in free:
        functions[step.places[place].file, step.places[place].function].append(place)
    most = max(functions.values(), key=lambda lines: sum(host[each] for each in lines), default=[])
    if not most:
        return None
    inside = [one for one in step.operations if one.place in most and one.work is not Work.VIEW]
    return Loop(
        most[0],
        sum(one.ns for one in inside),
        sum(one.host_ns for one in inside),
        len(inside),
        turns[most[0]],
    )


def _before_backward(step: Step) -> Iterable[Operation]:
    """Of the longest part of the forward that no backward divides: each micro-batch has its own."""
    parts: list[list[Operation]] = [[]]
    for one in step.operations:
        if one.in_backward:
            if parts[-1]:
                parts.append([])
        elif one.place != NOWHERE and one.work is not Work.VIEW:
            parts[-1].append(one)
    return max(parts, key=len)


def _turns(operations: Iterable[Operation]) -> int:
    """How often a line is come by: it may ask for one operator twice in a turn, and for some in a
    few turns alone."""
    counts = Counter(one.name for one in operations).values()
    most = max(counts, default=0)
    return min((count for count in counts if 2 * count >= most), default=0)


def _are_alike(operations: list[Operation], turns: int) -> bool:
    """In sizes and numbers; of the layers of a net each reads a weight of its own, and each turn
    reads those of the one before."""
    asked: dict[str, Counter[Any]] = defaultdict(Counter)
    weights: dict[str, set[int]] = defaultdict(set)
    for one in operations:
        sizes = tuple(
            (len(each.view[1]), each.view[1][1:]) for each in one.makes if each.is_strided
        )
        asked[one.name][sizes, _fractions(one.arguments)] += 1
        weights[one.name] |= {each.storage for each in one.reads if each.is_weight}
    if any(len(own) > max(1, asked[name].total() // turns) for name, own in weights.items()):
        return False
    # A line may ask for one operator several times in a turn, of several sizes.
    usual = sum(_usual(each, turns) for each in asked.values())
    return usual >= ALIKE * len(operations)


def _usual(asked: Counter[Any], turns: int) -> int:
    most = max(1, asked.total() // turns)
    return sum(count for _, count in asked.most_common(most))


def _fractions(argument: Any) -> tuple[float, ...]:
    """Among what an operation is asked with: a number that one turn has read and the next uses."""
    if isinstance(argument, float):
        return (argument,)
    if isinstance(argument, tuple):
        return tuple(found for each in argument for found in _fractions(each))
    return ()


def _are_independent(step: Step, place: int, turns: int) -> bool:
    """How many operations of the line lie behind each other: as many as one turn has, where none
    needs what another has made."""
    depths: dict[int, int] = {}
    deepest = count = 0
    for one in step.operations:
        if one.in_backward:
            continue
        depth = max((depths.get(each.storage, 0) for each in one.reads), default=0)
        if one.place == place and one.work is not Work.VIEW:
            depth, count = depth + 1, count + 1
            deepest = max(deepest, depth)
        if depth:
            for storage in {each.storage for each in one.makes} | one.writes:
                depths[storage] = max(depth, depths.get(storage, 0))
    return deepest <= max(1, count // turns)
