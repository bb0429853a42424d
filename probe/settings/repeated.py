"""A linear layer that one forward calls many times, though no call depends on another's result: an
output projection applied word by word where all words are known. One call for all of them reads its
weight once.

The graph shows it, but for what has no gradient: a choice by `argmax` that goes into the next turn.
"""

import sys
from collections.abc import Iterable
from typing import Any, Final

from .autocast import is_leaf, name_of
from .users import MOST_NODES, Users, bytes_of, parameter_of

REPEATED: Final = "repeated_layer"
"""As `settings.Settings` has it."""
FEWEST_CALLS: Final = 8
"""Fewer may each be another thing: heads, scales, the two halves of a batch."""
MOST_LAYERS: Final = 3
"""That are looked at: those first of whose gradients most bytes are added up."""
PRODUCTS: Final = {
    "AddmmBackward0": "_saved_mat1_sym_sizes",
    "MmBackward0": "_saved_self_sym_sizes",
}
"""Of a linear layer with a bias and without: where the sizes of its input are."""
TRANSPOSED: Final = "TBackward0"
"""`nn.Linear` turns its weight round in each call."""

Layer = tuple[int, int, int, int]
"""The fields of `settings.RepeatedLayer`."""


def repeated_layer(users: Users) -> Layer | None:
    """None where there is none."""
    leaves = (one for one, often in users.items() if len(often) >= FEWEST_CALLS and is_leaf(one))
    weights = [one for one in leaves if bytes_of(one) and _dimensions(one) == 2]
    weights.sort(key=lambda one: (len(users[one]) - 1) * bytes_of(one), reverse=True)
    left = MOST_NODES
    for weight in weights[:MOST_LAYERS]:
        products = _products(users, weight)
        rows = sorted(map(_rows, products))
        if not rows or not rows[0]:
            continue
        waits, met = _any_waits(products, left)
        left -= met
        if not waits:
            inputs, outputs = map(int, sys.modules["torch"].Tensor.size(parameter_of(weight)))
            if name_of(users[weight][0]) == TRANSPOSED:
                inputs, outputs = outputs, inputs
            return len(products), rows[len(rows) // 2], inputs, outputs
    return None


def _dimensions(weight: Any) -> int:
    return int(sys.modules["torch"].Tensor.dim(parameter_of(weight)))


def _products(users: Users, weight: Any) -> list[Any]:
    """The calls of the layer; none where the weight has another use as well, or is what layers are
    called with, as an input that wants a gradient."""
    found: list[Any] = []
    for user in users[weight]:
        is_turned = name_of(user) == TRANSPOSED
        last = user if is_turned else weight
        for one in users.get(user, ()) if is_turned else (user,):
            if name_of(one) not in PRODUCTS or one.next_functions[-1][0] is not last:
                return []
            found.append(one)
    return found


def _rows(product: Any) -> int:
    """0 where this torch does not keep them."""
    sizes = getattr(product, PRODUCTS[name_of(product)], None)
    return int(sizes[0]) if sizes else 0


def _any_waits(products: Iterable[Any], most: int) -> tuple[bool, int]:
    """Whether one of them needs what another has made, or there are more than `most` nodes below
    them; and how many were met."""
    own = set(products)
    met = set[Any]()
    waiting = [below for one in own for below, _ in one.next_functions]
    while waiting:
        node = waiting.pop()
        if node in own or len(met) > most:
            return True, len(met)
        if node is None or node in met or is_leaf(node):
            continue
        met.add(node)
        waiting += (below for below, _ in node.next_functions)
    return False, len(met)
