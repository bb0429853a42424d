"""Two products in a row whose other order takes a fraction of the arithmetic: `(q @ k.T) @ v`
without a softmax between, or a graph's features that are made narrow behind the sum over neighbours
and not before it."""

from math import prod
from typing import NamedTuple

from .multiplied_out import SCALES, is_by_a_number, is_product
from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value, Work

CHEAPER = 4.0
"""Times, at the least: small sides use a device worse."""
KEEPS_ORDER = SCALES | {"neg", "_to_copy", "clone"}


class _Product(NamedTuple):
    """What made a matrix, up to where another product reads it."""

    one: Operation
    rows: int
    inner: int
    columns: int
    is_sparse: bool
    way: tuple[Operation, ...] = ()


def costly_order(step: Step) -> Needless | None:
    """What both of such products take, with their backward, less what the other order would."""
    parts: dict[int, tuple[float, tuple[Operation, ...]]] = {}
    """By the first product: the part that goes of some operations."""
    made: dict[int, _Product] = {}
    needed = set[int]()
    """First products that something else reads."""
    for one in step.operations:
        if one.in_backward or one.work is Work.VIEW:
            continue
        product = _product(one)
        for each in one.reads:
            first = made.get(each.storage)
            if first is None:
                continue
            part = None if product is None else _spared(first, one, each)
            if part is not None and id(first.one) not in parts:
                parts[id(first.one)] = part
            elif one.name in KEEPS_ORDER and (len(one.reads) == 1 or is_by_a_number(one)):
                way = first._replace(way=(*first.way, one))
                made |= dict.fromkeys((one.makes[0].storage, *one.writes), way)
            else:
                needed.add(id(first.one))
        if product is not None and not one.is_kept:
            made[one.makes[0].storage] = product
    return _sum(step, [part for first, part in parts.items() if first not in needed])


def _product(one: Operation) -> _Product | None:
    if not is_product(one):
        return None
    left, right = one.reads[-2:]
    if not (right.is_strided and one.makes[0].is_strided):
        return None
    sizes = left.view[1] if left.is_strided else left.view[0]
    return _Product(one, sizes[-2], sizes[-1], right.view[1][-1], not left.is_strided)


def _spared(
    first: _Product, one: Operation, read: Value
) -> tuple[float, tuple[Operation, ...]] | None:
    """`read` is the first one's matrix, as the second has it. None where its other order is not
    cheaper, or there is none."""
    left, right = one.reads[-2:]
    if not (left.is_strided and right.is_strided and read.is_strided):
        return None
    sizes, whole = read.view[1], prod(first.one.makes[0].view[1])
    sides = {(first.rows, first.columns), (first.columns, first.rows)}
    is_left = read is left
    if prod(sizes) != whole or (sizes[-1] != first.columns and sizes[-2:] not in sides):
        return None
    if not is_left and (read is not right or sizes[-2:] not in sides):
        return None
    width = right.view[1][-1] if is_left else left.view[1][-2]
    if first.is_sparse:
        if not is_left or first.rows != first.inner or CHEAPER * width > first.columns:
            return None
        return 1.0 - width / first.columns, (first.one, *first.way)
    now = first.rows * first.columns * (first.inner + width)
    other = first.inner * width * (first.rows + first.columns)
    return None if CHEAPER * other > now else (1.0 - other / now, (first.one, *first.way, one))


def _sum(step: Step, parts: list[tuple[float, tuple[Operation, ...]]]) -> Needless | None:
    part_of_node = {one.node: part for part, own in parts for one in own if one.node != NOWHERE}
    found = {id(one): (one, part) for part, own in parts for one in own}
    for one in step.operations:
        if one.of_node in part_of_node:
            found[id(one)] = one, part_of_node[one.of_node]
    return sum_of(
        one._replace(ns=round(part * one.ns), host_ns=round(part * one.host_ns))
        for one, part in found.values()
    )
