"""Attention whose weights are made in full, by a backward's graph: a product, its softmax along the
last dimension, and a product of that, whose weights nothing else uses. Of what PyTorch's one kernel
does there is no softmax in the graph, or one of another name."""

import sys
from collections.abc import Iterator
from math import prod
from typing import Any, Final, NamedTuple

from ..loaders import is_dispatched
from .autocast import name_of
from .graph_rows import OPERANDS, VIEWS, inputs_of, is_any_of, is_last_dimension, result_of
from .users import Users

ATTENTION: Final = "attention_weights"
"""As `settings.Settings` has it."""
SOFTMAX: Final = "SoftmaxBackward0"
SCORES: Final = ("BmmBackward0", "BaddbmmBackward0")
USES: Final = "BmmBackward0"
DROPS: Final = ("NativeDropoutBackward0", "MulBackward0")
COPIES: Final = ("ToCopy", "Clone")
"""Of those that change no number."""
IN_ONE_CALL: Final = "ScaledDotProduct"
DEEPEST: Final = 4
"""Casts, views and a dropout between a softmax and a product."""

Weights = tuple[float, int, int, int, bool, int]
"""The fields of `settings.AttentionWeights`."""


def attention_among(users: Users) -> Weights | None:
    """None where there is none, or nothing may be read."""
    found = [one for node in users if (one := _attention(node, users)) is not None]
    if not found or is_dispatched(sys.modules["torch"]):
        return None
    products = (one for one in users if name_of(one) in OPERANDS)
    whole = sum(prod(result_of(one)) * inputs_of(one) for one in products)
    if not whole:
        return None
    largest = max(found, key=lambda each: each.nbytes)
    in_one_call = sum(name_of(one).startswith(IN_ONE_CALL) for one in users)
    bytes_each = sum(one.nbytes for one in found) / whole
    is_dropped = any(one.is_dropped for one in found)
    return bytes_each, len(found), largest.length, largest.width, is_dropped, in_one_call


class _Attention(NamedTuple):
    """One of them. It holds no node."""

    nbytes: int
    """Of all results from its scores to the weights that are multiplied."""
    length: int
    width: int
    is_dropped: bool


def _attention(softmax: Any, users: Users) -> _Attention | None:
    if name_of(softmax) != SOFTMAX or not is_last_dimension(softmax):
        return None
    scores = list(_down_to_product(softmax))
    if not scores or name_of(scores[-1]) not in SCORES:
        return None
    above = list(_up_to_product(softmax, users))
    if not above or name_of(above[-1]) != USES:
        return None
    weights = above[-2] if len(above) > 1 else softmax
    if above[-1].next_functions[0][0] is not weights:
        return None  # the second factor: what is attended to is weighted by none
    return _Attention(
        nbytes=sum(map(_bytes_made, (softmax, *scores, *above[:-1]))),
        length=result_of(softmax)[-1],
        width=result_of(above[-1])[-1],
        is_dropped=any(name_of(one) in DROPS for one in above),
    )


def _down_to_product(node: Any) -> Iterator[Any]:
    for _ in range(DEEPEST):
        node = node.next_functions[0][0]
        if node is None:
            return
        yield node
        if not is_any_of(node, VIEWS):
            return


def _up_to_product(node: Any, users: Users) -> Iterator[Any]:
    """Through what alone uses each: weights that are averaged for the loss have another user."""
    for _ in range(DEEPEST):
        uses = users.get(node, ())
        if len(uses) != 1:
            return
        node = uses[0]
        yield node
        if not is_any_of(node, VIEWS) and name_of(node) not in DROPS:
            return


def _bytes_made(node: Any) -> int:
    """Of a node's result; 0 of a view."""
    metadata = getattr(node, "_input_metadata", None)
    if not metadata or (is_any_of(node, VIEWS) and not is_any_of(node, COPIES)):
        return 0
    return prod(result_of(node)) * int(metadata[0].dtype.itemsize)
