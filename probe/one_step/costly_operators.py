"""Operators of which another does the same for a part of the time: products with one-hot rows for
lookups, whole sorts for the choice of a few, and inverses for the solution of a few equations."""

from collections.abc import Iterable, Iterator
from typing import Final

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, Work, forward_readings
from .operators import MATRIX_PRODUCTS
from .products import sizes_of

ZEROS: Final = frozenset({"zeros", "zeros_like", "new_zeros"})
SCATTERS: Final = frozenset({"scatter", "scatter_"})
KEEPS: Final = frozenset({"_to_copy", "clone", "copy_"})
"""What is copied has the same numbers."""
FEWEST: Final = 16
"""Numbers in a row: a product with fewer costs nothing."""
SORT: Final = "sort"
INVERSE: Final = "linalg_inv_ex"
DETERMINANTS: Final = frozenset({"_linalg_slogdet", "_linalg_det"})
PRODUCTS: Final = MATRIX_PRODUCTS | {"mv", "addmv", "dot"}
FEWEST_ROWS: Final = 32
"""Of a matrix that is inverted."""
FEW: Final = 8
"""Numbers of a sort for each that is read of it, and columns of a matrix for each vector that its
inverse is multiplied by, at the least."""


def one_hot(step: Step) -> Needless | None:
    """The products and their backward, and, where nothing else reads such rows, what makes them."""
    blank: dict[int, Operation] = {}
    hot: dict[int, tuple[Operation, ...]] = {}
    """What has made the rows in a storage."""
    products: list[Operation] = []
    made_for: dict[int, Operation] = {}
    others = set[int]()
    """Operations that make rows which something else reads, by identity."""
    for one in step.operations:
        if one.work is Work.VIEW or one.in_backward:
            continue
        if one.name in ZEROS and one.makes:
            blank[one.makes[0].storage] = one
            continue
        source = blank.get(one.reads[0].storage) if _puts_ones(one) else None
        if source is not None:
            hot[one.makes[0].storage] = source, one
            continue
        for storage in {each.storage for each in one.reads} & hot.keys():
            if one.name in KEEPS and one.makes:
                hot[one.makes[0].storage] = *hot[storage], one
            elif one.name in MATRIX_PRODUCTS:
                products.append(one)
                made_for |= {id(each): each for each in hot[storage]}
            else:
                others |= {id(each) for each in hot[storage]}
    makers = (one for key, one in made_for.items() if key not in others)
    return sum_of((*makers, *_with_backward(step, products))) if products else None


def _puts_ones(one: Operation) -> bool:
    """It puts a number, and no tensor, at one place in each row of many."""
    if one.name not in SCATTERS or len(one.reads) != len(("rows", "index")):
        return False
    rows, index = one.reads
    if not (one.makes and rows.is_strided and index.is_strided):
        return False
    sizes = zip(rows.view[1], index.view[1], strict=False)
    wide = [(row, at) for row, at in sizes if row != at]
    return len(wide) == 1 and wide[0][0] >= FEWEST and wide[0][1] == 1


def few_sorted(step: Step) -> Needless | None:
    """Sorts of which only a small part is read: the first ones, or one in the middle."""
    readings = forward_readings(step)

    def read(value: Value) -> int:
        return max((part.bytes for _, part in readings.get(value.storage, ())), default=0)

    return sum_of(
        one
        for one in step.operations
        if one.name == SORT and any(map(read, one.makes))
        if all(read(value) * FEW <= value.bytes for value in one.makes)
    )


def inverse(step: Step) -> Needless | None:
    """Of matrices that are only multiplied by a few vectors, with determinants of the same."""
    readings = forward_readings(step)
    found = [
        one
        for one in step.operations
        if one.name == INVERSE and not one.in_backward and one.reads and one.makes
        if sizes_of(one.makes[0])[-1:] >= (FEWEST_ROWS,)
        if _is_for_few(one.makes[0], [by for by, _ in readings.get(one.makes[0].storage, ())])
    ]
    matrices = {one.reads[0].storage for one in found}
    found += [
        one
        for one in step.operations
        if one.name in DETERMINANTS and not one.in_backward
        if any(each.storage in matrices for each in one.reads)
    ]
    return sum_of(_with_backward(step, found)) if found else None


def _is_for_few(inverse: Value, reading: list[Operation]) -> bool:
    """Whether all that reads it multiplies it by a few vectors."""
    for one in reading:
        others = [each for each in one.reads if each.storage != inverse.storage]
        few = others and all(each.bytes * FEW <= inverse.bytes for each in others)
        if one.name not in PRODUCTS or not few:
            return False
    return bool(reading)


def _with_backward(step: Step, own: Iterable[Operation]) -> Iterator[Operation]:
    """These, and what goes back through them."""
    forward = tuple(own)
    nodes = {one.node for one in forward} - {NOWHERE}
    yield from forward
    for one in step.operations:
        if one.of_node in nodes and one.work is not Work.VIEW:
            yield one
