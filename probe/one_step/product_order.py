"""Two products in a row whose other order takes a fraction of the arithmetic: `(q @ k.T) @ v`
without a softmax between, or a graph's features that are made narrow behind the sum over neighbours
and not before it."""

from math import prod
from typing import Final, NamedTuple

from .needless import Needless
from .operation import Operation, Step, Value, Work
from .products import Parts, is_scaled, operands, sizes_of, sum_in_parts

CHEAPER: Final = 4.0
"""Times, at the least: small sides use a device worse."""


class _Product(NamedTuple):
    """What made a matrix, or a stack of them, up to where another product reads it."""

    one: Operation
    sizes: tuple[int, ...]
    inner: int
    is_sparse: bool
    way: tuple[Operation, ...] = ()


def costly_order(step: Step) -> Needless | None:
    """What both of such products take, with their backward, less what the other order would."""
    parts: dict[int, Parts] = {}
    """By the first product."""
    made: dict[int, _Product] = {}
    needed = set[int]()
    """First products that something else reads."""
    for one in step.operations:
        if one.in_backward or one.work is Work.VIEW:
            continue
        for each in one.reads:
            first = made.get(each.storage)
            if first is None:
                continue
            part = _spared(first, one, each)
            if part is not None and id(first.one) not in parts:
                parts[id(first.one)] = part
            elif is_scaled(one):
                way = first._replace(way=(*first.way, one))
                made |= dict.fromkeys({value.storage for value in one.makes} | one.writes, way)
            else:
                needed.add(id(first.one))
        product = _product(one)
        if product is not None and not one.is_kept:
            made[one.makes[0].storage] = product
    return sum_in_parts(step, (part for first, part in parts.items() if first not in needed))


def _product(one: Operation) -> _Product | None:
    """What is added to it would have to be multiplied as before, but for a bias."""
    asked = operands(one)
    if asked is None or (asked.added is not None and len(sizes_of(asked.added)) > 1):
        return None
    inner = sizes_of(asked.left)[-1]
    return _Product(one, sizes_of(one.makes[0]), inner, not asked.left.is_strided)


def _spared(first: _Product, one: Operation, read: Value) -> Parts | None:
    """`read` is the first one's matrix, as the second has it. None where its other order is not
    cheaper, or there is none."""
    asked = operands(one)
    if asked is None or not (asked.left.is_strided and read.is_strided):
        return None
    sizes, (rows, columns) = sizes_of(read), first.sizes[-2:]
    is_left, is_right = read is asked.left, read is asked.right
    is_whole = sizes[-2:] in ((rows, columns), (columns, rows))
    whole = prod(sizes)
    if not whole or whole != prod(first.sizes) or is_left == is_right:
        return None
    if not is_whole and not (is_left and sizes[-1] == columns):
        return None
    width = sizes_of(asked.right)[-1] if is_left else sizes_of(asked.left)[-2]
    if first.is_sparse:
        if not is_left or rows != first.inner or CHEAPER * width > columns:
            return None
        return 1.0 - width / columns, (first.one, *first.way)
    # Each of a stack's matrices, of the first product or of the second, has a product of its own.
    stacks = max(prod(first.sizes[:-2]), prod(sizes[:-2]))
    now = whole * (first.inner + width)
    if is_left and sizes[-1] == columns:
        other = stacks * first.inner * columns * width + whole // columns * first.inner * width
    else:
        other = stacks * first.inner * width * (rows + columns)
    if CHEAPER * other > now:
        return None
    return 1.0 - other / now, (first.one, *first.way, one)
