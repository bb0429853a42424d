"""Two narrow weights that are multiplied out before a layer uses their product, as for LoRA by
`x @ (weight + A @ B)`: the layer's inputs times one and then the other cost a fraction of it."""

from collections.abc import Iterable
from typing import Final

from .needless import A_NUMBER, Needless, sum_of
from .operation import NOWHERE, Operation, Step, Work
from .operators import MATRIX_PRODUCTS

NARROW: Final = 8
"""Times as wide as the inner side the outer ones are, at the least."""
SUMS: Final = frozenset(("add", "add_", "sub", "sub_"))
SCALES: Final = frozenset(("mul", "mul_", "div", "div_"))
LINEAR: Final = SUMS | SCALES | {"neg", "_to_copy", "clone"}
"""What may be done to the product, and the layer can still take its parts in turn. A copy into the
type of autocast is one."""
USES: Final = MATRIX_PRODUCTS | {"convolution"}


def multiplied_out(step: Step) -> Needless | None:
    """What multiplying out, what is done to its result and the backward of both take. Where nothing
    else learns by that, the gradient of the whole product goes as well."""
    found = _used(step)
    if not found:
        return None
    nodes = {one.node for one in found} - {NOWHERE}
    backward = [one for one in step.operations if one.of_node in nodes]
    whole = () if _learns_beside(found) else _gradients(step, backward)
    return sum_of((*found, *backward, *whole))


def _used(step: Step) -> list[Operation]:
    """Those of the forward, of products that layers use and nothing else does."""
    learned = {each.storage for one in step.operations for each in one.reads if each.is_weight}
    there = learned | step.lasting
    """Storages that nothing of the batch goes into."""
    chains: dict[int, tuple[Operation, ...]] = {}
    """How a storage was made, from its product on."""
    used, needed = list[tuple[Operation, ...]](), set[int]()
    for one in step.operations:
        if one.in_backward or one.work is Work.VIEW:
            continue
        read = {each.storage for each in one.reads}
        made = {each.storage for each in one.makes} - read | one.writes
        behind = read & chains.keys()
        if behind and one.name in USES:
            used += [chains[each] for each in behind]
        elif behind and _is_linear(one):
            whole = (*(each for storage in behind for each in chains[storage]), one)
            chains |= dict.fromkeys(made, whole)
        elif behind:
            needed |= {id(each) for storage in behind for each in chains[storage]}
        elif read <= there and read & learned:
            if is_product(one) and _is_narrow(one):
                chains |= dict.fromkeys(made, (one,))
            elif _is_linear(one):
                there |= made
                learned |= made
    # Alone, and not added to a weight, it is a matter of order (`product_order`).
    summed = (chain for chain in used if any(one.name in SUMS for one in chain))
    left = (chain for chain in summed if needed.isdisjoint(map(id, chain)))
    return list({id(one): one for chain in left for one in chain}.values())


def _is_linear(one: Operation) -> bool:
    """Not by the elements of another matrix, which no narrow one can take."""
    return one.name in LINEAR and (
        one.name not in SCALES or len(one.reads) == 1 or is_by_a_number(one)
    )


def is_by_a_number(one: Operation) -> bool:
    """It scales a tensor by another that holds one number."""
    return one.name in SCALES and all(each.bytes <= A_NUMBER for each in one.reads[1:])


def is_product(one: Operation) -> bool:
    """Of two matrices: tensors of the program's own types are not read."""
    return one.name in MATRIX_PRODUCTS and len(one.reads) > 1 and bool(one.makes)


def _is_narrow(one: Operation) -> bool:
    left, right = one.reads[-2:]
    if not (left.is_strided and right.is_strided):
        return False
    rows, inner, columns = left.view[1][-2], left.view[1][-1], right.view[1][-1]
    return bool(NARROW * inner <= min(rows, columns))


def _learns_beside(found: Iterable[Operation]) -> bool:
    """What the product is added to needs that gradient as well."""
    return any(one.name in SUMS and any(each.is_weight for each in one.reads) for one in found)


def _gradients(step: Step, backward: Iterable[Operation]) -> list[Operation]:
    """Products that make what the backward of the chains begins with."""
    read = {each.storage for one in backward for each in one.reads}
    own = {id(one) for one in backward}
    return [
        one
        for one in step.operations
        if one.in_backward and one.name in MATRIX_PRODUCTS and id(one) not in own
        if any(each.storage in read for each in one.makes)
    ]
