"""Gradients that are mostly zeros, for of many numbers few were picked: the least distance of each
point to all others, of whose gradient one number in a row is not zero."""

from collections import defaultdict
from typing import Final

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, Work
from .operators import MATRIX_PRODUCTS

FEW: Final = 8
"""Numbers of the whole for each that was picked, at the least."""
PUTS: Final = frozenset({"scatter", "scatter_add", "index_put", "_index_put_impl"})
"""They put a gradient of what was picked where that was, among zeros."""
MASK: Final = "eq"
"""The backward of `amin` and `amax` compares all numbers with what was picked…"""
TIMES: Final = "mul"
"""…and multiplies by that."""
_KEEP_ZEROS: Final = """
    neg mul div sgn sqrt pow abs _to_copy clone contiguous masked_fill where sum expand
    _cdist_backward bmm baddbmm mm threshold_backward clamp ge le gt lt logical_and"""
KEEP_ZEROS: Final = frozenset(_KEEP_ZEROS.split())
"""Where their operand is zero they make zeros, or a sum without them: what they do for those could
be left out. A softmax's backward is none of these, nor is a norm's."""
ENDS: Final = frozenset({"sum", "_cdist_backward", "bmm", "baddbmm", "mm"})
"""What makes a gradient dense again. A pooling over times or points is no such choice: what lies
before it is a layer, whose operators are none of these."""
SUMS: Final = frozenset({"add", "sub"})
LEAST_BYTES: Final = 65_536
"""Of such a gradient."""


def picked(step: Step) -> Needless | None:
    """The backward of what came before a choice, up to where its gradient is dense again. A layer's
    products with its weights are none of it: what goes in there is the net's. None where it ends
    in no sum over what was not chosen."""
    by_node: dict[int, list[Operation]] = defaultdict(list)
    for one in step.operations:
        if one.in_backward and one.work is not Work.VIEW:
            by_node[one.of_node].append(one)
    layers = {
        one.node
        for one in step.operations
        if one.node != NOWHERE and one.name in MATRIX_PRODUCTS
        if any(each.is_weight for each in one.reads)
    }
    sparse: dict[int, int] = {}
    """Storages of gradients that are mostly zeros, with their bytes."""
    puts: list[Operation] = []
    behind: list[Operation] = []
    for node, own in by_node.items():
        made = _of_choice(own)
        if made is not None:
            sparse[made.storage] = made.bytes
            puts += own
            _goes_on(own, sparse)  # one more may be added to it
        elif node not in layers and _goes_on(own, sparse):
            behind += own
    ends = any(
        one.name in ENDS and any(each.storage in sparse for each in one.reads) for one in behind
    )
    return sum_of((*puts, *behind)) if ends else None


def _of_choice(own: list[Operation]) -> Value | None:
    """What the backward of one node makes, if it is the gradient of a choice."""
    masks = {each.storage for one in own if one.name == MASK for each in one.makes}
    for one in own:
        if not one.makes or one.makes[0].bytes < LEAST_BYTES or len(one.reads) <= 1:
            continue
        made = one.makes[0]
        if one.name.rstrip("_") in PUTS and one.reads[-1].bytes * FEW <= made.bytes:
            return made
        by_mask = one.name.rstrip("_") == TIMES and any(each.storage in masks for each in one.reads)
        if by_mask and min(each.bytes for each in one.reads) * FEW <= made.bytes:
            return made
    return None


def _goes_on(own: list[Operation], sparse: dict[int, int]) -> bool:
    """Whether a node's gradient is one of these; what it makes of it for others is, then, where it
    has as many numbers."""
    found = False
    for one in own:
        read = [each for each in one.reads if each.storage in sparse]
        if not read:
            continue
        if one.name.rstrip("_") in SUMS:
            whole = max(each.bytes for each in read)
            rest = (each for each in one.reads if each.storage not in sparse)
            if any(each.bytes * FEW > whole for each in rest):
                for each in one.makes:
                    sparse.pop(each.storage, None)  # a dense one is added to it
                continue
        elif one.name.rstrip("_") not in KEEP_ZEROS:
            return False
        found = True
        least = max(each.bytes for each in read) // 2
        sparse |= {each.storage: each.bytes for each in one.makes if each.bytes >= least}
    return found
