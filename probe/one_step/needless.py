"""Which operations of a step need not be: what is the same in each step, what was computed before
in the same one, what nothing uses, and products with matrices of zeros."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from .operation import NOWHERE, Operation, Step, Work
from .operators import MATRIX_PRODUCTS

LEAST_BYTES: Final = 4_096
"""Of what an operation reads or makes: a smaller one costs its call, and no more."""
A_NUMBER: Final = 8
"""Bytes."""
NEARLY_EMPTY: Final = 0.005
"""Part of a matrix that is not zero, up to which a sparse product is faster, surely: of 40,000 x
40,000 with 17 numbers a row (0.04 %) by 128 the dense one in tf32 took 5.4 to 6.9 times as long as
all of a step without it, on an H200."""


class Needless(NamedTuple):
    """Some operations of a step."""

    ns: int
    host_ns: int
    operations: int
    place: int
    """Where most of that is asked for."""


class Steady(NamedTuple):
    """Values of a step by what was computed to get them."""

    keys: tuple[int, ...]
    """Of each operation: equal where the same is computed of the same values."""
    is_steady: tuple[bool, ...]
    """Whether nothing but what lasts goes in."""


def steady_of(step: Step) -> Steady:
    """Number the values of a step by their operations."""
    values: dict[int, tuple[int, bool]] = {}
    keys, steady = [], []
    for at, one in enumerate(step.operations):
        read = []
        is_steady = not one.is_random
        for each in one.reads:
            known = values.get(each.storage)
            if known is None:
                known = values[each.storage] = each.storage, each.storage in step.lasting
            read.append((known[0], each.view))
            is_steady = is_steady and known[1]
        key = hash((one.name, one.arguments, tuple(read), at if one.is_random else 0))
        keys.append(key)
        steady.append(is_steady)
        held = {each.storage for each in one.reads}
        for index, each in enumerate(one.makes):
            if each.storage not in held:
                values[each.storage] = hash((key, index)), is_steady
        for storage in one.writes:
            values[storage] = hash((key, "written")), is_steady
    return Steady(tuple(keys), tuple(steady))


def constant(step: Step, steady: Steady, before: frozenset[int]) -> Needless | None:
    """What only needs what lasts, and was computed in the step that was traced before as well,
    whose keys are `before`."""
    changed = _changed(step, lambda at: not steady.is_steady[at])
    found = [
        one
        for one, key, is_steady in zip(step.operations, steady.keys, steady.is_steady, strict=True)
        if is_steady and key in before and _is_large(one) and not one.in_backward
        if not _makes_any(one, changed)
    ]
    return _sum(found)


def repeated(step: Step, steady: Steady) -> Needless | None:
    """What was computed before in this step, of the same values. Where one backward goes through
    both, it would once; where it goes through the second alone, it must."""
    changed = _changed(step, lambda _: True)
    went = {(one.task, one.of_node) for one in step.operations}
    first: dict[int, Operation] = {}
    twin: dict[int, int] = {}
    """Of a node, the one that was made for the same before."""
    gone = set[int]()
    """Nodes of operations that are needless, but no other's twin."""
    found = []
    for one, key in zip(step.operations, steady.keys, strict=True):
        # what a checkpoint computes again in the backward is the forward's
        same = first.setdefault(hash((key, one.in_backward)), one)
        if same is not one and _is_repeated(one, same, changed):
            found.append(one)
            if NOWHERE not in (one.node, same.node):
                twin[one.node] = same.node
        elif one.of_node in gone or (one.task, twin.get(one.of_node)) in went:
            found.append(one)
            gone.add(one.node)
    return _sum(one for one in found if one.work is not Work.VIEW)


def _is_repeated(one: Operation, same: Operation, changed: set[int]) -> bool:
    if one.is_random or not one.reads or one.writes:
        return False
    return not (_makes_any(one, changed) or _makes_any(same, changed))


def unread(step: Step) -> Needless | None:
    """What a gradient could go through, and nothing reads: no backward, no other operation, no
    number on the host; and it was dropped before the step ended. A single number may have been
    printed, which no mode sees."""
    went = {one.of_node for one in step.operations}
    made = {each.storage for one in step.operations for each in one.makes}
    live = set[int]()
    found = []
    for one in reversed(step.operations):
        is_live = (
            one.node == NOWHERE
            or one.is_kept
            or one.node in went
            or all(each.bytes <= A_NUMBER for each in one.makes)
            or any(each.storage in live for each in one.makes)
            or any(each in live or each not in made for each in one.writes)
        )
        if is_live:
            live.update(each.storage for each in one.reads)
        elif _is_large(one):
            found.append(one)
    return _sum(found)


def by_zeros(step: Step) -> tuple[Needless, float] | None:
    """Products with matrices that hardly hold anything but zeros; and how much of them is not."""
    empty = {one for one, filled in step.filled.items() if filled <= NEARLY_EMPTY}
    found = _sum(
        one
        for one in step.operations
        if one.name in MATRIX_PRODUCTS and any(each.storage in empty for each in one.reads)
    )
    return None if found is None else (found, max(step.filled[one] for one in empty))


def _is_large(one: Operation) -> bool:
    large = any(each.bytes >= LEAST_BYTES for each in (*one.reads, *one.makes))
    return one.work is not Work.VIEW and not one.writes and large


def _changed(step: Step, which: Callable[[int], bool]) -> set[int]:
    """Storages that an operation changes."""
    found = set[int]()
    for at, one in enumerate(step.operations):
        if one.writes and which(at):
            found |= one.writes
    return found


def _makes_any(one: Operation, storages: set[int]) -> bool:
    return any(each.storage in storages for each in one.makes)


def _sum(found: Iterable[Operation]) -> Needless | None:
    """None of nothing."""
    at = Counter[int]()
    host_ns = count = 0
    for one in found:
        at[one.place] += one.ns
        host_ns += one.host_ns
        count += 1
    if not count:
        return None
    return Needless(sum(at.values()), host_ns, count, at.most_common(1)[0][0])
