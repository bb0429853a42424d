"""Two narrow weights that are multiplied out and added to another before a layer uses the sum, as
for LoRA by `x @ (weight + A @ B)`: the layer's inputs times one and then the other cost a fraction
of it."""

from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, Work
from .operators import MATRIX_PRODUCTS

NARROW: Final = 8
"""Times as wide as the inner side the outer ones are, at the least."""
CHEAPER: Final = 2.0
"""Times as much arithmetic as in turn, at the least: narrow products use a device worse."""
SUMS: Final = frozenset(("add", "add_", "sub", "sub_"))
SCALES: Final = frozenset(("mul", "mul_", "div", "div_"))
LINEAR: Final = SUMS | SCALES | {"neg", "_to_copy", "clone"}
"""What may be done to the product, and the layer can still take its parts in turn. A copy into the
type of autocast is one."""
MOST_IN_CHAIN: Final = 16
"""Operations from the product to the layer: what goes on longer is computed with."""
OPERANDS: Final = {"mm": 2, "bmm": 2, "addmm": 3, "baddbmm": 3}


class Operands(NamedTuple):
    """Of a product of two matrices, or of two stacks of them."""

    added: Value | None
    left: Value
    right: Value


class _Chain(NamedTuple):
    """A product and what was done to it since."""

    sides: tuple[int, int, int]
    """Of the product: rows, inner side and columns."""
    way: tuple[Operation, ...]


def operands(one: Operation) -> Operands | None:
    """None of what is no such product, or where a tensor of the program's own type is among them,
    of which nothing is known."""
    if len(one.reads) != OPERANDS.get(one.name) or not one.makes:
        return None
    *added, left, right = one.reads
    if not (right.is_strided and one.makes[0].is_strided):
        return None
    if len(sizes_of(left)) < 2 or len(sizes_of(right)) < 2:
        return None
    return Operands(added[0] if added else None, left, right)


def sizes_of(value: Value) -> tuple[int, ...]:
    """Of a sparse one too."""
    return tuple(value.view[1] if value.is_strided else value.view[0])


def multiplied_out(step: Step) -> Needless | None:
    """What multiplying out, what is done to its result and the backward of both take, less what the
    products in turn take instead. Where nothing else learns by the sum, the gradient of all of it
    goes as well."""
    found: dict[int, tuple[Operation, float]] = {}
    for chain, rows in _used(step):
        product = operands(chain.way[0])
        nodes = {one.node for one in chain.way} - {NOWHERE}
        backward = [one for one in step.operations if one.of_node in nodes]
        whole = [] if _learns_beside(chain.way) else _gradients(step, backward)
        height, inner, width = chain.sides
        now = 3 * height * inner * width + (rows * height * width if whole else 0)
        other = 3 * rows * inner * (height + width)
        if product is None or now < CHEAPER * other:
            continue
        part = 1.0 - other / now
        found |= {id(one): (one, part) for one in (*chain.way, *backward, *whole)}
    return sum_of(in_part(one, part) for one, part in found.values())


def in_part(one: Operation, part: float) -> Operation:
    """As if it took this part of its time."""
    return one._replace(ns=round(part * one.ns), host_ns=round(part * one.host_ns))


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
        elif len(behind) == 1 and _is_linear(one) and made.isdisjoint(read - behind):
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
            elif _is_linear(one):
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


def _is_linear(one: Operation) -> bool:
    """Not by the elements of another matrix, which no narrow one can take."""
    return one.name in LINEAR and (
        one.name not in SCALES or len(one.reads) == 1 or is_by_a_number(one)
    )


def is_by_a_number(one: Operation) -> bool:
    """It scales a tensor by another that holds one number."""
    others = one.reads[1:]
    return one.name in SCALES and all(prod(sizes_of(each)) == 1 for each in others)


def _narrow_sides(one: Operation) -> tuple[int, int, int] | None:
    product = operands(one)
    if product is None or not product.left.is_strided or one.name not in MATRIX_PRODUCTS:
        return None
    (rows, inner), columns = sizes_of(product.left)[-2:], sizes_of(product.right)[-1]
    return (rows, inner, columns) if NARROW * inner <= min(rows, columns) else None


def _learns_beside(way: Iterable[Operation]) -> bool:
    """What the product is added to needs that gradient as well."""
    return any(one.name in SUMS and any(each.is_weight for each in one.reads) for one in way)


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
