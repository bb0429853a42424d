"""A penalty on parameters that is a term of the loss, by a backward's graph: each is squared as a
whole, and the backward goes through all of it, in each step. An optimizer's weight decay does the
same as it reads the parameter anyway.

It does so for a sum of squares alone, times a number: not for absolute values, norms that are not
squared, a distance, or squares that are weighted one by one.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, Final

from .autocast import is_leaf, name_of
from .graph_rows import VIEWS, held, is_any_of, result_of
from .users import Users, bytes_of

PENALTY: Final = "penalty"
"""As `settings.Settings` has it."""
POWER: Final = "PowBackward0"
SCALES: Final = ("MulBackward0", "DivBackward0")
SUMS: Final = ("SumBackward", "MeanBackward")
ADDS: Final = ("AddBackward", "StackBackward", "CatBackward", *SUMS)
DEEPEST: Final = 2_000
"""Operations from a square to the loss: the terms of many parameters are added one by one."""

Penalty = tuple[float, int]
"""The fields of `settings.Penalty`."""


def penalty_among(users: Users) -> Penalty | None:
    """None where no parameter has one."""
    leaves = {one: size for one in users if is_leaf(one) and (size := bytes_of(one))}
    whole = sum(leaves.values())
    adds: dict[Any, bool] = {}
    found = [size for one, size in leaves.items() if any(_squares(one, users, adds))]
    return (sum(found) / whole, len(found)) if found else None


def _squares(leaf: Any, users: Users, adds: dict[Any, bool]) -> Iterator[bool]:
    """Whether each user of a parameter squares it, and all of that is added to the loss."""
    for user in users[leaf]:
        above = users.get(user, ()) if is_any_of(user, VIEWS) else (user,)
        yield any(_is_square(one, leaf, user) and _is_added(one, users, adds) for one in above)


def _is_square(node: Any, leaf: Any, view: Any) -> bool:
    if name_of(node) == POWER:
        exponent = getattr(node, "_saved_exponent", None)
        return isinstance(exponent, (int, float)) and exponent == 2
    both = {below for below, _ in node.next_functions}
    return name_of(node) == SCALES[0] and both in ({leaf}, {view})


def _is_added(node: Any, users: Users, adds: dict[Any, bool]) -> bool:
    """Up to what the backward starts from there is nothing but sums, and products with a number."""
    way: list[Any] = []
    while node not in adds and len(way) < DEEPEST:
        way.append(node)
        above = users.get(node, ())
        if not above:
            adds[node] = prod(result_of(node)) == 1
            break
        if len(above) > 1 or not _keeps(above[0], node):
            adds[node] = False
            break
        node = above[0]
    found = adds.get(node, False)
    adds.update(dict.fromkeys(way, found))
    return found


def _keeps(node: Any, below: Any) -> bool:
    name = name_of(node)
    if name.startswith(SCALES):
        first, *others = node.next_functions
        others = [one for one, _ in others]
        by_number = others == [None] and first[0] is below
        return by_number and result_of(node) == result_of(below) and _is_number(node)
    return name.startswith(ADDS) or is_any_of(node, VIEWS)


def _is_number(node: Any) -> bool:
    """What it multiplies with, or divides by: one of Python's, or the scale of a loss in fp16."""
    factor = held(node, "other")
    return factor is not None and factor.dim() == 0
