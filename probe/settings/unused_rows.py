"""Layers on rows of which nothing is used: that a loss ignores, that a mask or a gate makes zeros
of, or that are left out behind the layer (all positions of a text but the last).

From a layer towards the loss a row stays one until something mixes them. How many are used is known
where they get lost: by the loss's targets, by the zeros of the other factor, by a part that is cut
out. What is picked by indices may be chosen by the layer's own results, so that all are needed.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from .autocast import is_leaf, name_of
from .device_reads import Answers, DeviceReads, place_of
from .graph_rows import (
    ROW_BY_ROW,
    VIEWS,
    Product,
    Rows,
    dimension_of,
    is_any_of,
    is_last_dimension,
    is_row_by_row,
    kept,
    layer_of,
    result_of,
    rows_of,
    sizes_before,
)
from .later import Part, combined, rows_spared
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
LEAST_WIDTH: Final = 32
"""Of rows that are picked before a layer: of fewer numbers picking costs as much as it saves (8,192
rows of 16 of which a quarter is left out: 0.86x)."""
DEEPEST: Final = 64
"""Operations between a layer and what becomes of its rows, at the most."""


def unused_rows_of(
    products: Iterable[Product], whole: int, users: Users, reads: DeviceReads | None = None
) -> Rows | Callable[[Answers], Rows | None] | None:
    """None where all rows are used; `whole` is the arithmetic of all products. With `reads` it may
    be known later."""
    walk = _Walk(users, reads)
    found = [
        (walk.used(one.node, 0), layer_of(one))
        for one in products
        if name_of(one.node) in ROW_BY_ROW and one.inputs >= LEAST_WIDTH
    ]
    return rows_spared(found, whole)


class _Walk:
    """From layers towards the loss, through one graph."""

    def __init__(self, users: Users, reads: DeviceReads | None) -> None:
        self._users = users
        self._reads = reads
        self._known: dict[Any, Part] = {}

    def used(self, node: Any, depth: int) -> Part:
        """Of the rows that a node made the part that has a gradient."""
        if node in self._known:
            return self._known[node]
        found: Part = 0.0
        for user in self._users.get(node, ()):
            if found == 1.0 or depth >= DEEPEST:
                break
            part = self._by_user(node, user, depth)
            found = 1.0 if part == 1.0 else combined(_sum, found, part)
        self._known[node] = combined(_or_all, found) if depth < DEEPEST else 1.0
        return self._known[node]

    def _by_user(self, node: Any, user: Any, depth: int) -> Part:
        """What one user leaves of them."""
        name = name_of(user)
        if name in LOSSES:
            return self._of_targets(user)
        if name in (SELECT, SLICE):
            left = _cut_out(user, name)
            return left if left < 1.0 else self.used(user, depth + 1)
        if name == MULTIPLIES and result_of(user) == result_of(node):
            return combined(min, self._not_zero(node, user), self.used(user, depth + 1))
        same = name in SUMS and result_of(user) == result_of(node)  # nothing is repeated for it
        same = same or (name in ALONG_LAST and is_last_dimension(user))
        same = same or (name in ROW_BY_ROW and rows_of(user) is node) or is_row_by_row(user, node)
        return self.used(user, depth + 1) if same else 1.0

    def _of_targets(self, loss: Any) -> Part:
        target = self._kept(loss, "target")
        ignored = getattr(loss, "_saved_ignore_index", None)
        if target is None or ignored is None or not target.numel():
            return 1.0
        if ignored >= 1 << 63:
            ignored -= 1 << 64
        return self._read(target, lambda one: one != ignored)

    def _not_zero(self, node: Any, product: Any) -> Part:
        """By the other factor: one number a row, or a row of them."""
        factors = [below for below, _ in product.next_functions]
        is_first = factors[0] is node
        other = self._kept(product, "other" if is_first else "self")
        shape = result_of(product)
        if other is None or factors[0] is factors[-1]:
            return 1.0
        if not _is_final(factors[1 if is_first else 0]):
            return 1.0
        if other.dim() != len(shape) or not other.numel():
            return 1.0
        return self._read(other, _not_all_zero)

    def _kept(self, node: Any, name: str) -> Any:
        return kept(node, name, place_of(self._reads))

    def _read(self, tensor: Any, counts: Callable[[Any], Any]) -> Part:
        """The part of a tensor that counts, now or as it arrives."""
        if self._reads is None:
            return _part((tensor.detach(),), counts) if tensor.numel() <= MOST_ELEMENTS else 1.0
        asked = self._reads.rows_of(tensor)
        if asked is None:
            return 1.0
        return lambda answers: _part(answers.parts_of(asked), counts)


def _part(tensors: Iterable[Any], counts: Callable[[Any], Any]) -> float:
    found = [counts(one) for one in tensors]
    return float(sum(int(one.sum()) for one in found) / sum(one.numel() for one in found))


def _not_all_zero(factor: Any) -> Any:
    is_left = factor != 0
    return is_left.any(-1) if factor.size(-1) > 1 else is_left


def _sum(first: float, second: float) -> float:
    """Of two users: each row counts once at the least."""
    return min(1.0, first + second)


def _or_all(part: float) -> float:
    """Of rows of which nothing is used nothing is known."""
    return part or 1.0


def _cut_out(user: Any, name: str) -> float:
    """Of a row's own elements nothing is known; nor of samples, of which others may be used without
    a gradient (pseudo labels, targets of the same forward)."""
    sizes = sizes_before(user)
    dimension = dimension_of(user, len(sizes))
    if not 0 < dimension < len(sizes) - 1 or not sizes[dimension]:
        return 1.0
    left = 1 if name == SELECT else result_of(user)[dimension]
    return min(1.0, left / sizes[dimension])


def _is_final(factor: Any) -> bool:
    """A zero in it stays one, whatever it is multiplied with. A factor without a gradient may be
    made of the layer's own results: what is positive, the hardest of a batch."""
    for _ in range(DEEPEST):
        if factor is None or is_leaf(factor):
            return False
        if name_of(factor) in ZEROS_ARE_FINAL:
            return True
        if name_of(factor) not in (SELECT, SLICE) and not is_any_of(factor, VIEWS):
            return False
        factor = factor.next_functions[0][0]
    return False
