"""Products of matrices in a traced step: what they multiply, what may be done to a result so that
another product still can take its parts, and what such operations take with their backward."""

from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from .needless import Needless, sum_of
from .operation import NOWHERE, Operation, Step, Value

OPERANDS: Final = {"mm": 2, "bmm": 2, "addmm": 3, "baddbmm": 3}
SCALES: Final = frozenset(("mul", "mul_", "div", "div_"))
KEEPS_ORDER: Final = SCALES | {"neg", "_to_copy", "clone"}
"""A copy into the type of autocast is one."""
Parts = tuple[float, tuple[Operation, ...]]
"""What goes of some operations, 0 to 1."""


class Operands(NamedTuple):
    """Of a product of two matrices, or of two stacks of them."""

    added: Value | None
    left: Value
    right: Value


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


def is_scaled(one: Operation) -> bool:
    """It keeps a product's order: not what multiplies by the elements of another matrix."""
    if one.name not in KEEPS_ORDER:
        return False
    by_a_number = one.name in SCALES and all(prod(sizes_of(each)) == 1 for each in one.reads[1:])
    return by_a_number or len(one.reads) == 1


def sum_in_parts(step: Step, parts: Iterable[Parts]) -> Needless | None:
    """Operations and their backward, each as if it took its part of its time."""
    of_node: dict[int, float] = {}
    found: dict[int, tuple[Operation, float]] = {}
    for part, own in parts:
        of_node |= {one.node: part for one in own if one.node != NOWHERE}
        found |= {id(one): (one, part) for one in own}
    for one in step.operations:
        if one.of_node in of_node:
            found[id(one)] = one, of_node[one.of_node]
    return sum_of(
        one._replace(ns=round(part * one.ns), host_ns=round(part * one.host_ns))
        for one, part in found.values()
    )
