"""What a step computes only to multiply it by the number 0: the terms of a loss whose weights have
not begun to rise, as an adversary's before its first step."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from .needless import A_NUMBER, Needless, sum_of
from .operation import NOWHERE, Operation, Step, Work

TIMES: Final = ("mul", "mul_")
PASSES_ZERO: Final = ("neg", "sum", "mean", "_to_copy", "clone", "div")
"""Of nothing but zeros they make zeros."""
ZEROS: Final = (("float", 0.0), ("int", 0))
"""As an argument that is a number is kept."""
LIKE: Final = "_like"
DETACH: Final = "detach"
AVERAGES: Final = "batch_norm"
"""In names of operators that keep averages, which their schema does not say."""
Used = Callable[[Operation], set[int]]
"""Storages that an operation needs of those it reads."""


def zeroed(step: Step) -> Needless | None:
    """With the backward of it, through which zeros go. What is read or kept elsewhere is needed,
    but for a single number, which may be logged now and then; what nothing would read anyway is
    none of this."""
    discards = _discards(step)
    if not discards:
        return None

    def used_still(one: Operation) -> set[int]:
        return _used(one) - discards.get(id(one), set())

    updates = {one.task for one in step.operations if one.in_backward and _keeps(one)}
    """Backwards that leave gradients: these follow the forward, and are asked nothing."""
    asked = [one for one in step.operations if one.task not in updates]
    last = _last(step)
    needed, still = _behind(asked, _used, last), _behind(asked, used_still, last)
    averaged = _averaged(one for one in step.operations if id(one) in still)
    # What a layer averages of such inputs counts where others go through the same layer.
    still = _behind(asked, used_still, _last(step, averaged))
    gone, roots = needed - still, _roots(step, updates)
    without = _behind(asked, _used, roots=roots) - _behind(asked, used_still, roots=roots)
    nodes = {one.node for one in step.operations if id(one) in without} - {NOWHERE}
    return sum_of(
        one
        for one in step.operations
        if one.work is not Work.VIEW and (id(one) in gone or one.of_node in nodes)
    )


def _discards(step: Step) -> dict[int, set[int]]:
    """Of each operation, by identity, what it reads and multiplies by 0. Not within a function of
    the program's own, whose backward may give a gradient for it: there a forward computes without
    nodes from what has some."""
    zeros, discards = set[int](), dict[int, set[int]]()
    learned, cut = set[int](), set[int]()
    """What a gradient could go through, and what was computed of that without one."""
    for one in step.operations:
        if one.in_backward:
            continue
        read = {each.storage for each in one.reads}
        made = {each.storage for each in one.makes} - read | one.writes
        if one.node != NOWHERE:
            learned |= made
        elif one.name != DETACH and read & (learned | cut):
            cut |= made
        by_zero = one.name in TIMES and any(each in ZEROS for each in one.arguments[1:])
        if (by_zero or (one.name in TIMES and read & zeros)) and not made & cut:
            discards[id(one)] = read - zeros
            zeros |= made
        elif one.name in PASSES_ZERO and read and read <= zeros:
            zeros |= made
        else:
            zeros -= made
    return discards


def _used(one: Operation) -> set[int]:
    """A backward begins with ones in the shape of its loss, and asks for no value of it."""
    return set() if one.name.endswith(LIKE) else {each.storage for each in one.reads}


def _last(step: Step, averaged: frozenset[int] = frozenset()) -> frozenset[int]:
    """Operations of the forward, by identity, that something beside the step needs, or nothing
    after them uses. `averaged`: storages of layers that keep averages, which is their purpose as
    well."""
    forward = [one for one in step.operations if not one.in_backward]
    read = {storage for one in forward for storage in _used(one)}
    own = set[int]()
    for one in step.operations:
        own |= {each.storage for each in one.makes} - {each.storage for each in one.reads}
    return frozenset(
        id(one)
        for one in forward
        if _keeps(one)
        or one.writes - own
        or all(each.storage not in read for each in one.makes)
        or (AVERAGES in one.name and any(each.storage in averaged for each in one.reads))
    )


def _behind(
    asked: Sequence[Operation],
    used: Used,
    last: frozenset[int] = frozenset(),
    roots: Collection[int] = (),
) -> set[int]:
    """Operations by identity: the last, and all that these and the storages are made by. A backward
    is among them for what the forward makes of its gradients."""
    live, found = set(roots), set[int]()
    for one in reversed(asked):
        made = {each.storage for each in one.makes} | one.writes
        if id(one) in last or not made.isdisjoint(live):
            found.add(id(one))
            live |= used(one)
    return found


def _averaged(operations: Iterable[Operation]) -> frozenset[int]:
    """Storages that layers which keep averages read."""
    layers = (one for one in operations if AVERAGES in one.name and not one.in_backward)
    return frozenset(each.storage for one in layers for each in one.reads)


def _roots(step: Step, updates: Collection[int]) -> set[int]:
    """Losses: what a backward begins with that leaves gradients for an update."""
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


def _keeps(one: Operation) -> bool:
    """More than a number."""
    return one.is_kept and any(each.bytes > A_NUMBER for each in one.makes)
