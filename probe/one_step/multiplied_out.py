"""Two narrow weights that are multiplied out and added to another before a layer uses the sum, as
for LoRA by `x @ (weight + A @ B)`: the layer's inputs times one and then the other cost a fraction
of it."""

from collections import defaultdict
from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from .needless import Needless
from .operation import NOWHERE, Operation, Step, Work
from .operators import MATRIX_PRODUCTS
from .products import Parts, is_scaled, operands, sizes_of, sum_in_parts

NARROW: Final = 8
"""Times as wide as the inner side the outer ones are, at the least."""
CHEAPER: Final = 2.0
"""Times as much arithmetic as in turn, at the least: narrow products use a device worse."""
SUMS: Final = frozenset(("add", "add_", "sub", "sub_"))
"""What may be done to the product, beside `is_scaled`, and the layer can still take its parts."""
MOST_IN_CHAIN: Final = 16
"""Operations from the product to the layer: what goes on longer is computed with."""


class _Chain(NamedTuple):
    """A product and what was done to it since."""

    sides: tuple[int, int, int]
    """Of the product: rows, inner side and columns."""
    way: tuple[Operation, ...]


def multiplied_out(step: Step) -> Needless | None:
    """What multiplying out, what is done to its result and the backward of both take, less what the
    products in turn take instead. Where nothing else learns by the sum, the gradient of all of it
    goes as well."""
    used = _used(step)
    if not used:
        return None
    makers = _gradients(step)
    parts = list[Parts]()
    for chain, rows in used:
        nodes = {one.node for one in chain.way} - {NOWHERE}
        whole = tuple(
            one for node in nodes for one in makers.get(node, ()) if one.of_node not in nodes
        )
        if _learns_beside(chain.way):
            whole = ()
        height, inner, width = chain.sides
        now = 3 * height * inner * width + (rows * height * width if whole else 0)
        other = 3 * rows * inner * (height + width)
        if now >= CHEAPER * other:
            parts.append((1.0 - other / now, (*chain.way, *whole)))
    return sum_in_parts(step, parts)


def _used(step: Step) -> list[tuple[_Chain, int]]:
    """Chains that layers use and nothing else does, and the rows of the layer's inputs."""
    learned = {each.storage for one in step.operations for each in one.reads if each.is_weight}
    there = learned | step.lasting
    """Storages that nothing of the batch goes into."""
    chains: dict[int, _Chain] = {}
    """How a storage was made, from its product on."""
    made = set[int]()
    used, needed = list[tuple[_Chain, int]](), set[int]()
    for one in step.operations:
        if one.in_backward or one.work is Work.VIEW:
            continue
        read = {each.storage for each in one.reads}
        makes = {each.storage for each in one.makes} - read | one.writes
        behind = read & chains.keys()
        asked = [chains[each] for each in behind]
        rows = _rows_of_layer(one, behind)
        if len(behind) == 1 and rows:
            used += [(asked[0], rows)]
        elif (
            len(behind) == 1
            and (is_scaled(one) or one.name in SUMS)
            and made.isdisjoint(read - behind)
        ):
            whole = asked[0]._replace(way=(*asked[0].way, one))
            if len(whole.way) <= MOST_IN_CHAIN:
                chains |= dict.fromkeys(makes, whole)
            else:
                needed.add(id(whole.way[0]))
        elif behind:
            needed |= {id(chain.way[0]) for chain in asked}
        elif read <= there and read & learned:
            sides = _narrow_sides(one)
            if sides is not None:
                chains |= dict.fromkeys(makes, _Chain(sides, (one,)))
            elif is_scaled(one) or one.name in SUMS:
                there |= makes
                learned |= makes
        made |= {each.storage for each in one.makes} - read
    # Alone, and not added to a weight, it is a matter of order (`product_order`).
    return [
        (chain, rows)
        for chain, rows in used
        if id(chain.way[0]) not in needed and any(one.name in SUMS for one in chain.way)
    ]


def _rows_of_layer(one: Operation, behind: set[int]) -> int:
    """0 of what is no product of inputs with one of these."""
    product = operands(one)
    if product is None or product.left.storage == product.right.storage:
        return 0
    is_left = product.left.storage in behind
    if not is_left and product.right.storage not in behind:
        return 0
    weight, inputs = product[1:] if is_left else product[:0:-1]
    contracted = sizes_of(weight)[-1] if is_left else sizes_of(weight)[-2]
    return prod(sizes_of(inputs)) // max(1, contracted)


def _narrow_sides(one: Operation) -> tuple[int, int, int] | None:
    product = operands(one)
    if product is None or not product.left.is_strided:
        return None
    (rows, inner), columns = sizes_of(product.left)[-2:], sizes_of(product.right)[-1]
    return (rows, inner, columns) if NARROW * inner <= min(rows, columns) else None


def _learns_beside(way: Iterable[Operation]) -> bool:
    """What the product is added to needs that gradient as well."""
    return any(one.name in SUMS and any(each.is_weight for each in one.reads) for one in way)


def _gradients(step: Step) -> dict[int, list[Operation]]:
    """By the node whose backward reads what they make: products of another node's backward, as the
    gradient of a whole weight."""
    makers: dict[int, Operation] = {}
    found: dict[int, list[Operation]] = defaultdict(list)
    for one in step.operations:
        if not one.in_backward:
            continue
        for each in one.reads:
            maker = makers.get(each.storage)
            if maker is not None and maker.of_node != one.of_node:
                found[one.of_node].append(maker)
        if one.name in MATRIX_PRODUCTS:
            makers |= {each.storage: one for each in one.makes}
    return found
