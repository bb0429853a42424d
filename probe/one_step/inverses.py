"""Inverses of matrices that are only multiplied by a few vectors: solving for these takes a part of
the arithmetic, and so does one Cholesky factor of a covariance, which gives its determinant too."""

from collections import defaultdict
from typing import Final

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, Work
from .products import sizes_of

INVERSES: Final = frozenset({"linalg_inv_ex"})
DETERMINANTS: Final = frozenset({"_linalg_slogdet", "_linalg_det"})
PRODUCTS: Final = frozenset({"mm", "mv", "bmm", "addmm", "addmv", "baddbmm", "dot"})
FEWEST_ROWS: Final = 32
FEW: Final = 8
"""Columns of a matrix for each vector that its inverse is multiplied by, at the least."""


def inverses(step: Step) -> Needless | None:
    """With their backward, and with determinants of the same matrices."""
    readers: dict[int, list[Operation]] = defaultdict(list)
    for one in step.operations:
        if one.work is not Work.VIEW and not one.in_backward:
            for storage in {each.storage for each in one.reads}:
                readers[storage].append(one)
    found = [
        one
        for one in step.operations
        if one.name in INVERSES and not one.in_backward and one.reads and one.makes
        if sizes_of(one.makes[0])[-1:] >= (FEWEST_ROWS,)
        if _is_for_few(one.makes[0], readers[one.makes[0].storage])
    ]
    matrices = {one.reads[0].storage for one in found}
    found += [
        one
        for one in step.operations
        if one.name in DETERMINANTS and not one.in_backward
        if any(each.storage in matrices for each in one.reads)
    ]
    nodes = {one.node for one in found} - {NOWHERE}
    back = (one for one in step.operations if one.of_node in nodes and one.work is not Work.VIEW)
    return sum_of((*found, *back)) if found else None


def _is_for_few(inverse: Value, reading: list[Operation]) -> bool:
    """Whether all that reads it multiplies it by a few vectors."""
    for one in reading:
        others = [each for each in one.reads if each.storage != inverse.storage]
        few = others and all(each.bytes * FEW <= inverse.bytes for each in others)
        if one.name not in PRODUCTS or not few:
            return False
    return bool(reading)
