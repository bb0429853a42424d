"""A penalty on parameters that is a term of the loss, by a backward's graph: each is squared as a
whole, and the backward goes through all of it, in each step. An optimizer's weight decay does the
same as it reads the parameter anyway."""

from collections.abc import Iterator
from math import prod
from typing import Any, Final

from .autocast import is_leaf, name_of
from .graph_rows import VIEWS, result_of
from .users import Users, bytes_of

PENALTY: Final = "penalty"
"""As `settings.Settings` has it."""
SQUARES: Final = ("PowBackward0", "LinalgVectorNormBackward0", "NormBackward")
MULTIPLIES: Final = "MulBackward0"
DIVIDES: Final = "DivBackward0"
SUMS: Final = ("SumBackward", "MeanBackward")
DEEPEST: Final = 4
"""Operations from a square to its sum."""

Penalty = tuple[float, int]
"""The fields of `settings.Penalty`."""


def penalty_among(users: Users) -> Penalty | None:
    """None where no parameter has one."""
    leaves = {one: size for one in users if is_leaf(one) and (size := bytes_of(one))}
    whole = sum(leaves.values())
    found = [size for one, size in leaves.items() if any(_squares(one, users))]
    return (sum(found) / whole, len(found)) if found else None


def _squares(leaf: Any, users: Users) -> Iterator[bool]:
    """Whether each user of a parameter squares it, and all of that becomes one number."""
    for user in users[leaf]:
        name = name_of(user)
        if name.startswith(VIEWS):
            squares = [one for one in users.get(user, ()) if name_of(one).startswith(SQUARES)]
        elif name == MULTIPLIES:
            squares = [user] if all(below is leaf for below, _ in user.next_functions) else []
        else:
            squares = [user] if name.startswith(SQUARES) else []
        yield any(_is_summed(one, users) for one in squares)


def _is_summed(node: Any, users: Users) -> bool:
    """A norm of each row makes many numbers: a weight is normalised by it, or compared."""
    for _ in range(DEEPEST):
        if prod(result_of(node)) == 1:
            return True
        above = users.get(node, ())
        if len(above) != 1:
            return False
        node = above[0]
        scaled = name_of(node).startswith((MULTIPLIES, DIVIDES))
        if not scaled and not name_of(node).startswith(SUMS):
            return False
    return False
