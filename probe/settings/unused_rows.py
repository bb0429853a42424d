"""Layers on rows of which nothing is used: that a loss ignores, that a mask or a gate makes zeros
of, or that are left out behind the layer (all positions of a text but the last).

From a layer towards the loss a row stays one until something mixes them. How many are used is known
where they get lost: by the loss's targets, by the zeros of the other factor, by what was picked.
"""

import sys
from collections.abc import Iterable
from typing import Any, Final

from .autocast import name_of
from .gathered import GATHERS, different_in
from .graph_rows import (
    ALONG_ROWS,
    ROW_BY_ROW,
    Product,
    Rows,
    keeps_rows,
    kept,
    largest_of,
    result_of,
    rows_of,
)
from .users import Users

LOSSES: Final = ("NllLossBackward0", "NllLoss2DBackward0")
PICKS: Final = ("SelectBackward0", "SliceBackward0")
MULTIPLIES: Final = "MulBackward0"
SUMS: Final = ("AddBackward0", "SubBackward0")
ALONG_LAST: Final = ("LogSoftmaxBackward0", "SoftmaxBackward0")
MOST_ELEMENTS: Final = 1 << 18
"""Of targets or factors that are looked through."""
DEEPEST: Final = 64
"""Operations between a layer and what becomes of its rows, at the most."""


def unused_rows_of(products: Iterable[Product], whole: int, users: Users) -> Rows | None:
    """None where all rows are used; `whole` is the arithmetic of all products."""
    known: dict[Any, float] = {}
    found = [
        (1.0 - _used(one.node, users, known, 0), one)
        for one in products
        if name_of(one.node) in ROW_BY_ROW and one.inputs
    ]
    return largest_of(found, whole)


def _used(node: Any, users: Users, known: dict[Any, float], depth: int) -> float:
    """Of the rows that a node made the part that has a gradient, 0 to 1."""
    if node in known:
        return known[node]
    found = 0.0
    for user in users.get(node, ()):
        if found >= 1.0 or depth >= DEEPEST:
            break
        found += _by_user(node, user, users, known, depth)
    found = min(1.0, found) if found and depth < DEEPEST else 1.0
    known[node] = found
    return found


def _by_user(node: Any, user: Any, users: Users, known: dict[Any, float], depth: int) -> float:
    """What one user leaves of them."""
    name = name_of(user)
    if name in LOSSES:
        return _of_targets(user)
    if name in PICKS or name in GATHERS:
        left = _picked(user, name)
        return left if left < 1.0 else _passed_on(node, user, users, known, depth)
    if name == MULTIPLIES:
        left = _not_zero(node, user)
        return min(left, _passed_on(node, user, users, known, depth))
    along = name in SUMS or name in ALONG_LAST or name.startswith(ALONG_ROWS)
    if along or (name in ROW_BY_ROW and rows_of(user) is node):
        return _passed_on(node, user, users, known, depth)
    return 1.0


def _passed_on(node: Any, user: Any, users: Users, known: dict[Any, float], depth: int) -> float:
    """What is left of the user's own rows, where they are the same."""
    same = name_of(user) in ROW_BY_ROW or keeps_rows(user, node)
    if name_of(user) in (*SUMS, MULTIPLIES):
        same = result_of(user) == result_of(node)  # nothing is repeated for it
    return _used(user, users, known, depth + 1) if same else 1.0


def _of_targets(loss: Any) -> float:
    target = kept(loss, "target", sys.modules["torch"])
    ignored = getattr(loss, "_saved_ignore_index", None)
    if target is None or ignored is None or not 0 < target.numel() <= MOST_ELEMENTS:
        return 1.0
    if ignored >= 1 << 63:
        ignored -= 1 << 64
    return float((target != ignored).sum().item() / target.numel())


def _picked(user: Any, name: str) -> float:
    """Of a row's own elements nothing is known."""
    sizes: tuple[int, ...] = getattr(user, "_saved_self_sym_sizes", ())
    if name in GATHERS:
        counted, made = different_in(user, name), result_of(user)
        rows = made[0] if counted is None else counted[0]  # each counts once, however often
        along_first = getattr(user, "_saved_dim", 0) == 0 and len(made) == len(sizes)
        return min(1.0, rows / sizes[0]) if along_first and sizes[0] else 1.0
    dimension = int(getattr(user, "_saved_dim", -1)) % (1 << 64)
    if dimension >= len(sizes) - 1 or not sizes[dimension]:
        return 1.0
    if name == PICKS[0]:
        return 1.0 / sizes[dimension]
    return min(1.0, result_of(user)[dimension] / sizes[dimension])


def _not_zero(node: Any, product: Any) -> float:
    """By the other factor: one number a row, or a row of them."""
    factors = [below for below, _ in product.next_functions]
    name = "other" if factors[0] is node else "self"
    other = kept(product, name, sys.modules["torch"])
    shape = result_of(product)
    if other is None or factors[0] is factors[-1] or result_of(node) != shape:
        return 1.0
    if other.dim() != len(shape) or not 0 < other.numel() <= MOST_ELEMENTS:
        return 1.0
    any_left = other.detach() != 0
    if other.size(-1) > 1:
        any_left = any_left.any(-1)
    return float(any_left.sum().item() / any_left.numel())
