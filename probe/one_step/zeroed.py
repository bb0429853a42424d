"""What a step computes only to multiply it by the number 0: the terms of a loss whose weights have
not begun to rise, as an adversary's before its first step."""

from collections.abc import Callable
from typing import Final

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Work

TIMES: Final = ("mul", "mul_")
PASSES_ZERO: Final = ("neg", "sum", "mean", "_to_copy", "clone", "div")
"""Of nothing but zeros they make zeros."""
ZEROS: Final = (("float", 0.0), ("int", 0))
"""As an argument that is a number is kept."""
LIKE: Final = "_like"
AVERAGES: Final = "batch_norm"
"""In names of operators that keep averages."""
Used = Callable[[Operation], set[int]]
"""Storages that an operation needs of those it reads."""


def zeroed(step: Step) -> Needless | None:
    """With the backward of it, through which zeros go. What is read or kept elsewhere is needed;
    what nothing would read anyway is none of this."""
    zeros, discards = set[int](), dict[int, set[int]]()
    for one in step.operations:
        if one.in_backward:
            continue
        read = {each.storage for each in one.reads}
        by_zero = one.name in TIMES and any(each in ZEROS for each in one.arguments[1:])
        if by_zero or (one.name in TIMES and read & zeros):
            discards[id(one)] = read - zeros
            zeros |= {each.storage for each in one.makes} - read
        elif one.name in PASSES_ZERO and read and read <= zeros:
            zeros |= {each.storage for each in one.makes}
    if not discards:
        return None
    needed = _needed(step, _used)
    still = _needed(step, lambda one: _used(one) - discards.get(id(one), set()))
    gone = [
        one for one in step.operations if id(one) in needed - still and one.work is not Work.VIEW
    ]
    nodes = {one.node for one in gone} - {NOWHERE}
    backward = (one for one in step.operations if one.of_node in nodes)
    return sum_of({id(one): one for one in (*gone, *backward)}.values())


def _used(one: Operation) -> set[int]:
    """A backward begins with ones in the shape of its loss, and asks for no value of it."""
    return set() if one.name.endswith(LIKE) else {each.storage for each in one.reads}


def _needed(step: Step, used: Used) -> set[int]:
    """Operations by identity: the last of each chain of the forward, and what these use. A backward
    is needed for what the forward makes of its gradients: what it leaves for an update follows the
    forward's."""
    forward = (one for one in step.operations if not one.in_backward)
    read = {storage for one in forward for storage in _used(one)}
    live, found = set[int](), set[int]()
    for one in reversed(step.operations):
        made = {each.storage for each in one.makes} | one.writes
        is_last = one.is_kept or not made or _changes(one) or made.isdisjoint(read)
        if not made.isdisjoint(live) or (is_last and not one.in_backward):
            found.add(id(one))
            live |= used(one)
    return found


def _changes(one: Operation) -> bool:
    """It changes what is there: but for averages of a layer that nothing learns by."""
    return bool(one.writes) and AVERAGES not in one.name
