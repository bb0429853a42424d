"""Products of a forward that need not be computed: those that were computed before, of the same two
operands; of rows that were gathered before a layer and not behind it; of rows that nothing uses.

A node of the backward's graph keeps its operands for the gradient, so what they hold can be
compared: some of their elements, and all of those that seem to be the same.

Operands are read on the host alone, where that is free. A look at a product takes 10 to 20 us (two
cores, torch 2.13), and comes as seldom as the walk that finds them allows.
"""

import sys
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Final

from ..loaders import is_dispatched
from .autocast import is_leaf, name_of
from .gathered import gathered_of
from .graph_rows import OPERANDS, ROW_BY_ROW, Product, inputs_of, kept, result_of, rows_of
from .repeated import TRANSPOSED
from .unused_rows import unused_rows_of
from .users import Users

UNUSED_ROWS: Final = "unused_products"
PRODUCTS: Final = ("same_products", "gathered_products", UNUSED_ROWS, "recomputed_products")
"""As `settings.Settings` has them."""
CHECKPOINTS: Final = "torch.utils.checkpoint"
REENTRANT: Final = "CheckpointFunctionBackward"
"""The older kind of it, which hides what it holds from the graph."""
MOST_PRODUCTS: Final = 256
"""That are looked at; of a graph with more those are no part of the whole."""
FEWEST_VALUES: Final = 8
"""Of the elements that are compared, those that must be neither 0 nor alike: a mask, a one-hot row
or a state that begins with zeros is the same twice by its kind."""
MOST_COMPARED: Final = 1 << 22
"""Elements of a graph's operands that are compared."""
LEAF: Final = "torch::autograd::"
CLOSED: Final = ("MkldnnRnn", "ScaledDotProduct", "ThnnFused", "CudnnRnn", "MiopenRnn")
"""Nodes that hold arithmetic of which nothing is known."""
Same = tuple[float, int, int]
"""The fields of `settings.SameProducts`."""


def products_among(users: Users, is_whole: bool = True) -> dict[str, Any]:
    """The fields of `PRODUCTS`; None each where there are none, or nothing may be read: within a
    dispatch mode, which would see it, or of a tensor's subclass. On a device the graph alone
    tells, and no operand is read. `is_whole`: nothing but what `users` holds uses any result."""
    torch = sys.modules["torch"]
    found = [] if is_dispatched(torch) else list(_products(users, torch))
    whole = sum(one.flops for one in found)
    recomputed = _recomputed(found, whole, users)
    if not whole or len(found) > MOST_PRODUCTS:
        return {**dict.fromkeys(PRODUCTS), PRODUCTS[-1]: recomputed}
    same = _same(found, whole, torch) if all(map(_is_open, users)) else None
    unused = unused_rows_of(found, whole, users) if is_whole else None
    each = same, gathered_of(found, whole), unused, recomputed
    return dict(zip(PRODUCTS, each, strict=True))


def _is_open(node: Any) -> bool:
    """Its arithmetic is known: not that of a recurrent layer, of attention in one call, of what is
    compiled or of a function of the program's own, whose names have no number."""
    name = name_of(node)
    return name.startswith(LEAF) or (name[-1:].isdigit() and not name.startswith(CLOSED))


def _products(nodes: Iterable[Any], torch: Any) -> Iterator[Product]:
    count = 0
    for node in nodes:
        if (names := OPERANDS.get(name_of(node))) is None:
            continue
        count += 1
        if count > MOST_PRODUCTS + 1:
            return
        first, second = (kept(node, name, torch) for name in names)
        inputs = inputs_of(node, torch)
        yield Product(node, 2 * prod(result_of(node)) * inputs, inputs, first, second)


def _recomputed(products: Iterable[Product], whole: int, nodes: Iterable[Any]) -> Any:
    """The part of all arithmetic that `torch.utils.checkpoint` does again in the backward, and how
    many parts of a net whose products are no nodes of the graph, since that is built again."""
    again = sum(one.flops for one in products if _is_computed_anew(one.node))
    parts = sum(name_of(node) == REENTRANT for node in nodes)
    return (again / whole if whole else 0.0, parts) if again or parts else None


def _is_computed_anew(node: Any) -> bool:
    for name in OPERANDS[name_of(node)]:
        try:
            hook = getattr(node, f"_raw_saved_{name}").unpack_hook
        except (AttributeError, RuntimeError):
            continue
        if hook is not None and getattr(hook, "__module__", None) == CHECKPOINTS:
            return True
    return False


def _same(products: list[Product], whole: int, torch: Any) -> Same | None:
    """The part of all arithmetic that computes again what was computed, how many products there
    are, and how many different ones: as far as they were compared, those with most of it first."""
    groups: dict[Any, list[Product]] = {}
    for one in products:
        if not one.flops:
            return None  # what it has kept was put away
        if one.first is None:
            continue
        first = _looks(one.first)
        second = _weight_of(one.node) if one.second is None else _looks(one.second)
        if first is not None and second is not None:
            key = (name_of(one.node), _how(one.node), first, second)
            groups.setdefault(key, []).append(one)
    again, left = 0, MOST_COMPARED
    saved = 0
    for group in sorted(groups.values(), key=_flops_again, reverse=True):
        different: list[Product] = []
        for one in group:
            equal = False
            for other in different:
                equal, left = _are_same(other, one, left, torch)
                if equal or left < 0:
                    break
            again += equal
            saved += one.flops * equal
            different += [] if equal else [one]
    return (saved / whole, len(products), len(products) - again) if again else None


def _how(node: Any) -> Any:
    """What beside the operands makes a product another one: how a convolution goes over its input,
    and whether the gradient goes on to the first operand."""
    fields = ("stride", "padding", "dilation", "groups", "transposed", "output_padding")
    how = tuple(str(getattr(node, f"_saved_{one}", None)) for one in fields)
    if name_of(node) in ROW_BY_ROW:
        return (*how, rows_of(node) is None)
    return (*how, node.next_functions[0][0] is None)


def _weight_of(node: Any) -> Any:
    """The leaf of a product's second operand; None of what is computed."""
    below = node.next_functions[-1][0]
    if below is not None and name_of(below) == TRANSPOSED:
        below = below.next_functions[0][0]
    return below if below is not None and is_leaf(below) else None


def _flops_again(group: list[Product]) -> int:
    return sum(one.flops for one in group[1:])


def _looks(tensor: Any) -> Any:
    """Its shape and some elements, spread over it; None where these may be alike by their kind."""
    shape = tuple(tensor.shape)
    most = 8 if len(shape) <= 2 else 3
    part = tensor.detach()[tuple(slice(None, None, max(1, size // most)) for size in shape)]
    values = tuple(part.flatten().tolist())
    if len({value for value in values if value}) < FEWEST_VALUES:
        return None
    return shape, values


def _are_same(one: Product, other: Product, left: int, torch: Any) -> tuple[bool, int]:
    """Whether all their elements are; and how many more may be compared. What is too large for that
    is not taken as the same."""
    for mine, its in ((one.first, other.first), (one.second, other.second)):
        if mine is None or its is None or mine.data_ptr() == its.data_ptr():
            continue
        left -= mine.numel()
        if left < 0 or not torch.equal(mine.detach(), its.detach()):
            return False, left
    return True, left
