"""Products of a forward that need not be computed: those that were computed before, of the same two
operands; of rows that were gathered before a layer and not behind it; of rows that nothing uses.

A look at a product takes 10 to 20 us (two cores, torch 2.13), and comes as seldom as the walk that
finds them allows. What is read on a device arrives later.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, Final

from ..loaders import is_dispatched
from .autocast import name_of
from .device_reads import Answers, DeviceReads, place_of
from .gathered import gathered_of
from .graph_rows import OPERANDS, Product, flops_of, held, inputs_of, kept, result_of
from .same_products import same_among, same_on_device
from .unused_rows import unused_rows_of
from .users import Users, parameter_of

UNUSED_ROWS: Final = "unused_products"
PRODUCTS: Final = ("same_products", "gathered_products", UNUSED_ROWS, "recomputed_products")
"""As `settings.Settings` has them."""
CHECKPOINTS: Final = "torch.utils.checkpoint"
REENTRANT: Final = "CheckpointFunctionBackward"
"""The older kind of it, which hides what it holds from the graph."""
MOST_PRODUCTS: Final = 1024
"""That are looked at; of a graph with more those are no part of the whole."""
LEAF: Final = "torch::autograd::"
RECURRENT: Final = ("MkldnnRnn", "CudnnRnn", "MiopenRnn")
ATTENTION: Final = "ScaledDotProduct"
"""Nodes that hold products, and keep nothing of their operands that could be compared."""


Field = Any | Callable[[Answers], Any]
"""As `settings.Settings` has it, or what makes it of what arrives."""


def products_among(
    users: Users, is_whole: bool = True, reads: DeviceReads | None = None
) -> dict[str, Field]:
    """The fields of `PRODUCTS`; None each where there are none, or nothing may be read: within a
    dispatch mode, which would see it, or of a tensor's subclass. `is_whole`: nothing but what
    `users` holds uses any result. `reads` takes what lies on a device, and was begun; without it
    operands are read on the host alone."""
    found = [] if is_dispatched(sys.modules["torch"]) else list(_products(users, place_of(reads)))
    closed = [_closed_flops(one) for one in users] if found else []
    whole = sum(one.flops for one in found) + sum(filter(None, closed))
    recomputed = _recomputed(found, whole, users)
    if not whole or len(found) > MOST_PRODUCTS:
        return {**dict.fromkeys(PRODUCTS), PRODUCTS[-1]: recomputed}
    same: Field = None
    if None not in closed:
        operands = found, whole
        same = same_among(*operands) if reads is None else same_on_device(*operands, reads)
    unused = unused_rows_of(found, whole, users, reads) if is_whole else None
    each = same, gathered_of(found, whole, reads), unused, recomputed
    return dict(zip(PRODUCTS, each, strict=True))


def _closed_flops(node: Any) -> int | None:
    """Arithmetic of products that are no nodes of their own: a recurrent layer's weights at each
    time and sample, attention in one call. None of what is compiled, and of a function of the
    program's own, whose names have no number."""
    name = name_of(node)
    if name.startswith(RECURRENT):
        weights = (parameter_of(below) for below, _ in node.next_functions if below is not None)
        return 2 * prod(result_of(node)[:2]) * sum(_matrix(one) for one in weights)
    if name.startswith(ATTENTION):
        keys = held(node, "key")
        return None if keys is None else 4 * prod(result_of(node)) * int(keys.shape[-2])
    return 0 if name.startswith(LEAF) or name[-1:].isdigit() else None


def _matrix(weight: Any) -> int:
    return int(weight.numel()) if weight is not None and weight.dim() > 1 else 0


def _products(nodes: Iterable[Any], place: str) -> Iterator[Product]:
    count = 0
    for node in nodes:
        if (names := OPERANDS.get(name_of(node))) is None:
            continue
        count += 1
        if count > MOST_PRODUCTS + 1:
            return
        first, second = (kept(node, name, place) for name in names)
        yield Product(node, flops_of(node), inputs_of(node), first, second)


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
