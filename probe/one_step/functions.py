"""What the functions of a program take of a step, and what fusing their operations would leave."""

from collections import defaultdict
from typing import Final, NamedTuple

from .operation import NOWHERE, Operation, Step, Work, readers_of

LEFT: Final = 1.0


class FunctionTime(NamedTuple):
    """The operations that one function asks for, with what goes back through them."""

    place: int
    """The line that takes most of it."""
    ns: int
    host_ns: int
    backward_ns: int
    unlearned_ns: int
    """Of the forward, what no gradient goes through, but for copies from the host."""
    fusible_ns: int
    fused_ns: int
    """Of these, what one kernel each way would take: the bytes that come from elsewhere and go
    elsewhere, of all that they read and make."""
    operations: int
    operation: str
    """The one that takes most of it, in all places together…"""
    operation_ns: int
    """…and what that takes."""


def functions_of(step: Step) -> list[FunctionTime]:
    """Those with most time first."""
    groups: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for one in step.operations:
        if one.place != NOWHERE and one.work is not Work.VIEW:
            place = step.places[one.place]
            groups[place.file, place.function].append(one)
    readers = readers_of(step.operations)
    found = [_time_of(group, readers) for group in groups.values()]
    return sorted(found, key=lambda one: one.ns, reverse=True)


def _time_of(group: list[Operation], readers: dict[int, set[int]]) -> FunctionTime:
    lines: dict[int, int] = defaultdict(int)
    names: dict[str, int] = defaultdict(int)
    for one in group:
        lines[one.place] += one.ns
        names[one.name] += one.ns
    most = max(names, key=names.__getitem__)
    fusible_ns = fused_ns = 0
    for in_backward in (False, True):
        fusible = [
            one for one in group if one.work is Work.FUSIBLE and one.in_backward is in_backward
        ]
        took = sum(one.ns for one in fusible)
        fusible_ns += took
        fused_ns += round(took * _left(fusible, readers))
    return FunctionTime(
        max(lines, key=lines.__getitem__),
        sum(one.ns for one in group),
        sum(one.host_ns for one in group),
        sum(one.ns for one in group if one.in_backward),
        sum(one.ns for one in group if one.of_node == one.node == NOWHERE and one.brings is None),
        fusible_ns,
        fused_ns,
        len(group),
        most,
        names[most],
    )


def _left(fusible: list[Operation], readers: dict[int, set[int]]) -> float:
    """Of the bytes that operations read and make, those that they would as one kernel."""
    own = {id(one) for one in fusible}
    made: set[int] = set()
    whole = outside = 0
    seen: set[int] = set()
    for one in fusible:
        for each in one.reads:
            whole += each.bytes
            if each.storage not in made and each.storage not in seen:
                outside += each.bytes
                seen.add(each.storage)
        for each in one.makes:
            whole += each.bytes
            if each.storage in one.writes and each.storage not in made:
                outside += each.bytes
                continue
            made.add(each.storage)
            reading = readers.get(each.storage)
            if one.is_kept or not reading or not reading <= own:
                outside += each.bytes
    return min(1.0, outside / whole) if whole else LEFT
