"""Layers on rows of which nothing is used: that a loss ignores, that a mask or a gate makes zeros
of, or that are left out behind the layer (all positions of a text but the last).

From a layer towards the loss a row stays one until something mixes them. How many are used is known
where they get lost: by the loss's targets, by the zeros of the other factor, by a part that is cut
out. What is picked by indices may be chosen by the layer's own results, so that all are needed.
"""

import sys
from collections.abc import Iterable
from typing import Any, Final

from .autocast import name_of
from .graph_rows import (
    ROW_BY_ROW,
    VIEWS,
    Product,
    Rows,
    dimension_of,
    is_last_dimension,
    is_row_by_row,
    kept,
    largest_of,
    result_of,
    rows_of,
    sizes_before,
)
from .users import Users

LOSSES: Final = ("NllLossBackward0", "NllLoss2DBackward0")
SELECT: Final = "SelectBackward0"
SLICE: Final = "SliceBackward0"
MULTIPLIES: Final = "MulBackward0"
SUMS: Final = ("AddBackward0", "SubBackward0")
ALONG_LAST: Final = ("LogSoftmaxBackward0", "SoftmaxBackward0")
ZEROS_ARE_FINAL: Final = ("SoftmaxBackward0", "ScatterBackward0")
"""Of a factor that learns: a zero of these has no gradient, whatever it is multiplied with. A gate
that is rounded (straight through) has."""
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
    if name in (SELECT, SLICE):
        left = _cut_out(user, name)
        return left if left < 1.0 else _used(user, users, known, depth + 1)
    if name == MULTIPLIES and result_of(user) == result_of(node):
        return min(_not_zero(node, user), _used(user, users, known, depth + 1))
    same = name in SUMS and result_of(user) == result_of(node)  # nothing is repeated for it
    same = same or (name in ALONG_LAST and is_last_dimension(user))
    same = same or (name in ROW_BY_ROW and rows_of(user) is node) or is_row_by_row(user, node)
    return _used(user, users, known, depth + 1) if same else 1.0


def _of_targets(loss: Any) -> float:
    target = kept(loss, "target", sys.modules["torch"])
    ignored = getattr(loss, "_saved_ignore_index", None)
    if target is None or ignored is None or not 0 < target.numel() <= MOST_ELEMENTS:
        return 1.0
    if ignored >= 1 << 63:
        ignored -= 1 << 64
    return float((target != ignored).sum().item() / target.numel())


def _cut_out(user: Any, name: str) -> float:
    """Of a row's own elements nothing is known."""
    sizes = sizes_before(user)
    dimension = dimension_of(user, len(sizes))
    if dimension >= len(sizes) - 1 or not sizes[dimension]:
        return 1.0
    left = 1 if name == SELECT else result_of(user)[dimension]
    return min(1.0, left / sizes[dimension])


def _not_zero(node: Any, product: Any) -> float:
    """By the other factor: one number a row, or a row of them."""
    factors = [below for below, _ in product.next_functions]
    is_first = factors[0] is node
    other = kept(product, "other" if is_first else "self", sys.modules["torch"])
    shape = result_of(product)
    if other is None or factors[0] is factors[-1] or not _is_final(factors[1 if is_first else 0]):
        return 1.0
    if other.dim() != len(shape) or not 0 < other.numel() <= MOST_ELEMENTS:
        return 1.0
    any_left = other.detach() != 0
    if other.size(-1) > 1:
        any_left = any_left.any(-1)
    return float(any_left.sum().item() / any_left.numel())


def _is_final(factor: Any) -> bool:
    """A zero in it stays one, whatever it is multiplied with."""
    for _ in range(DEEPEST):
        if factor is None or name_of(factor) in ZEROS_ARE_FINAL:
            return True
        if name_of(factor) not in (SELECT, SLICE) and not name_of(factor).startswith(VIEWS):
            return False
        factor = factor.next_functions[0][0]
    return False
