"""Which operations of a step need not be: what is the same in each step, what was computed before
in the same one, what nothing uses, and products with matrices of zeros."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Final, NamedTuple

from .operation import NOWHERE, Operation, Step, Work
from .operators import MATRIX_PRODUCTS

PRODUCTS: Final = re.compile(
    r"mm$|convolution$|_scaled_dot_product|lstm|gru|embedding|native_.*norm$"
)
"""Operators that somebody would not call to print something."""
BLANK: Final = ("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "full", "full_like")
"""They fill a tensor with one number: the first state of a recurrent net, whose product with the
weights is the same in each."""
DETACH: Final = "detach"
KEEP_THEIR_RESULT: Final = re.compile(
    r"_?(log_)?softmax|tanh|sigmoid|exp|expm1|r?sqrt|relu|elu|reciprocal|pow|cumprod|prod|linalg_.*"
)
SCATTERS: Final = ("index_put", "_index_put_impl_", "_unsafe_index_put")
OPERANDS: Final = 3
"""Of those with one index: what they add to, the index and the rows."""
OFTEN: Final = 8
"""Times that a row of a table is asked for, from which on adding up its gradients one after the
other counts."""
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


def steady_of(step: Step, ids: dict[Any, int]) -> Steady:
    """Number the values of a step by their operations. `ids` has those of earlier steps, and gets
    new ones."""
    values: dict[int, tuple[int, bool]] = {}
    keys, steady = [], []

    def number_of(what: Any) -> int:
        return ids.setdefault(what, -1 - len(ids))  # below 0: storages are above

    for one in step.operations:
        read = []
        is_steady = not one.is_random
        for each in one.reads:
            known = values.get(each.storage)
            if known is None:
                known = values[each.storage] = each.storage, each.storage in step.lasting
            read.append((known[0], each.view))
            is_steady = is_steady and known[1]
        key = number_of((one.arguments, tuple(read), len(ids) if one.is_random else None))
        keys.append(key)
        steady.append(is_steady)
        held = {each.storage for each in one.reads}
        for index, each in enumerate(one.makes):
            if each.storage not in held:
                values[each.storage] = number_of((key, index)), is_steady
        for storage in one.writes:
            values[storage] = number_of((key, "written")), is_steady
    return Steady(tuple(keys), tuple(steady))


def constant(step: Step, steady: Steady, before: frozenset[int]) -> Needless | None:
    """What only needs what lasts, and was computed in all steps that were traced before, of whose
    operations `before` are the keys."""
    changed = _changed(step, lambda at: not steady.is_steady[at])
    found = [
        one
        for one, key, is_steady in zip(step.operations, steady.keys, steady.is_steady, strict=True)
        if is_steady and key in before and _is_large(one) and not one.in_backward
        if not _makes_any(one, changed)
    ]
    return sum_of(found)


def repeated(step: Step, steady: Steady) -> Needless | None:
    """What was computed before in this step, of the same values. Where one backward goes through
    both, it would once; where it goes through the second alone, it must."""
    changed = _changed(step, lambda _: True)
    blank = {each.storage for one in step.operations if one.name in BLANK for each in one.makes}
    went = {(one.task, one.of_node) for one in step.operations}
    first: dict[tuple[int, bool], Operation] = {}
    twin: dict[int, int] = {}
    """Of a node, the one that was made for the same before."""
    gone = set[int]()
    """Nodes of operations that are needless, but no other's twin."""
    found = []
    for one, key in zip(step.operations, steady.keys, strict=True):
        # what a checkpoint computes again in the backward is the forward's
        same = first.setdefault((key, one.in_backward), one)
        is_blank = any(each.storage in blank for each in one.reads)
        if same is not one and not is_blank and _is_repeated(one, same, changed):
            found.append(one)
            if NOWHERE not in (one.node, same.node) and one.work is not Work.VIEW:
                twin[one.node] = same.node
        elif one.in_backward and (one.of_node in gone or (one.task, twin.get(one.of_node)) in went):
            found.append(one)
            gone |= {one.node} - {NOWHERE}
    return sum_of(one for one in found if one.work is not Work.VIEW)


def _is_repeated(one: Operation, same: Operation, changed: set[int]) -> bool:
    """Two of one backward are its own matter: both biases of a cell have the same gradient."""
    if one.is_random or not one.reads or one.writes:
        return False
    if one.in_backward and one.task == same.task:
        return False
    return not (_makes_any(one, changed) or _makes_any(same, changed))


def unread(step: Step) -> Needless | None:
    """What a gradient could go through, and nothing reads: no backward, no other operation, no
    number on the host; and it was dropped before the step ended. What may have been printed, which
    no mode sees, is not meant: a product of matrices or a convolution must be among it."""
    went = {one.of_node for one in step.operations if one.in_backward}
    made = {each.storage for one in step.operations for each in one.makes}
    live = set[int]()
    found = []
    for one, before in reversed(
        tuple(zip(step.operations, (None, *step.operations), strict=False))
    ):
        is_live = (
            (one.node == NOWHERE and not _keeps_result(one, before))
            or one.in_backward
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
    return sum_of(found) if any(PRODUCTS.search(one.name) for one in found) else None


def _keeps_result(one: Operation, before: Operation | None) -> bool:
    """It is what autograd does to keep the result of the operation before for its backward."""
    if one.name != DETACH or before is None or not KEEP_THEIR_RESULT.fullmatch(before.name):
        return False
    return one.reads[0].storage in {each.storage for each in before.makes}


def by_scatter(step: Step) -> Needless | None:
    """The backward of `table[index]`, with one index of whole numbers that asks for each row often:
    it adds up their gradients one after the other."""
    return sum_of(one for one in step.operations if _scatters(one))


def _scatters(one: Operation) -> bool:
    if (
        one.name not in SCATTERS
        or not one.in_backward
        or len(one.reads) != len(("table", "index", "rows"))
    ):
        return False
    (_, table, *_), (_, index, _, dtype) = (each.view for each in one.reads[:2])
    return str(dtype) == "torch.int64" and len(table) > 1 and prod(index) >= OFTEN * table[0]


def by_zeros(step: Step) -> tuple[Needless, float] | None:
    """Products with matrices that hardly hold anything but zeros; and how much of them is not."""
    empty = {one for one, filled in step.filled.items() if filled <= NEARLY_EMPTY}
    found = sum_of(
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


def sum_of(found: Iterable[Operation]) -> Needless | None:
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
