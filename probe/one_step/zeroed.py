"""What a step computes only to multiply it by the number 0: the terms of a loss whose weights have
not begun to rise, as an adversary's before its first step."""

from collections.abc import Callable
from typing import Final

from .needless import A_NUMBER, Needless, sum_of
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

    def used_still(one: Operation) -> set[int]:
        return _used(one) - discards.get(id(one), set())

    gone = _needed(step, _used) - _needed(step, used_still)
    roots = _roots(step)
    without = _behind(step, _used, roots) - _behind(step, used_still, roots)
    nodes = {one.node for one in step.operations if id(one) in without} - {NOWHERE}
    return sum_of(
        one
        for one in step.operations
        if one.work is not Work.VIEW and (id(one) in gone or one.of_node in nodes)
    )


def _used(one: Operation) -> set[int]:
    """A backward begins with ones in the shape of its loss, and asks for no value of it."""
    return set() if one.name.endswith(LIKE) else {each.storage for each in one.reads}


def _needed(step: Step, used: Used) -> set[int]:
    """Operations by identity: the last of each chain of the forward, and what these use. A backward
    is needed for what the forward makes of its gradients. A number that is kept may be logged, now
    and then."""
    forward = (one for one in step.operations if not one.in_backward)
    read = {storage for one in forward for storage in _used(one)}
    own = {
        each.storage
        for one in step.operations
        for each in one.makes
        if each.storage not in {another.storage for another in one.reads}
    }
    last = [
        one
        for one in step.operations
        if not one.in_backward
        and (
            _keeps(one) or _changes(one, own) or all(each.storage not in read for each in one.makes)
        )
    ]
    return _behind(step, used, set(), frozenset(map(id, last)))


def _behind(
    step: Step, used: Used, roots: set[int], last: frozenset[int] = frozenset()
) -> set[int]:
    """Operations by identity: these, and all that the storages are made by. What a backward leaves
    for an update follows the forward, and is asked nothing."""
    live, found, updates = set(roots), set[int](), _updates(step)
    for one in reversed(step.operations):
        if one.task in updates:
            continue
        made = {each.storage for each in one.makes} | one.writes
        if id(one) in last or not made.isdisjoint(live):
            found.add(id(one))
            live |= used(one)
    return found


def _roots(step: Step) -> set[int]:
    """Losses: what a backward begins with that leaves gradients for an update."""
    updates = _updates(step)
    started = {
        each.storage
        for one in step.operations
        if one.in_backward and one.task in updates
        for each in one.reads
    }
    return {
        one.reads[0].storage
        for one in step.operations
        if one.name.endswith(LIKE) and one.reads
        if any(each.storage in started for each in one.makes)
    }


def _updates(step: Step) -> set[int]:
    """Backwards that leave gradients."""
    return {one.task for one in step.operations if one.in_backward and _keeps(one)}


def _keeps(one: Operation) -> bool:
    return one.is_kept and any(each.bytes > A_NUMBER for each in one.makes)


def _changes(one: Operation, own: set[int]) -> bool:
    """It changes what is there, and none of the step's `own` storages: but for averages of a layer
    that nothing learns by."""
    return bool(one.writes - own) and AVERAGES not in one.name
