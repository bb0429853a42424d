"""Products of a forward that need not be computed: those that were computed before, of the same two
operands, and those of rows that were gathered or repeated before a layer and not behind it.

A node of the backward's graph keeps its operands for the gradient, so what they hold can be
compared: some of their elements, and all of the two that seem to be the most waste. A layer
computes row by row, so that rows which were gathered from fewer ones (the nodes of a graph for its
edges, the words of a vocabulary for a text) give no more different results than these.

Only on the host, where reading is free. A look at a product takes 10 to 20 us (two cores, torch
2.13), and comes as seldom as the walk that finds them allows.
"""

import sys
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Final, NamedTuple

from ..loaders import is_dispatched, runs_no_code
from .autocast import is_leaf, name_of

PRODUCTS: Final = ("same_products", "gathered_products")
"""As `settings.Settings` has them."""
OPERANDS: Final = {
    "AddmmBackward0": ("mat1", "mat2"),
    "MmBackward0": ("self", "mat2"),
    "BmmBackward0": ("self", "mat2"),
    "ConvolutionBackward0": ("input", "weight"),
}
"""What each keeps of its operands, rows first: each if the other wants a gradient."""
TRANSPOSED: Final = "TBackward0"
"""`nn.Linear` turns its weight round in each call."""
ROW_BY_ROW: Final = frozenset({"AddmmBackward0", "MmBackward0"})
MOST_PRODUCTS: Final = 256
"""That are looked at; of a graph with more those are no part of the whole."""
FEWEST_VALUES: Final = 8
"""Of the elements that are compared, those that must be neither 0 nor alike: a mask, a one-hot row
or a state that begins with zeros is the same twice by its kind."""
MOST_COMPARED: Final = 1 << 22
"""Elements of an operand from which on it is not compared as a whole."""
MOST_INDICES: Final = 1 << 18
"""Indices of which the different ones are counted, 1 to 5 ms; of more it is not known."""
LEAST_WIDTH: Final = 16
"""Of rows that are gathered: a product of fewer columns costs no more than gathering its result."""
ALONG_ROWS: Final = (
    *("View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Clone", "ToCopy", "Alias"),
    *("Relu", "Gelu", "Silu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Softplus", "Hardtanh"),
    "NativeLayerNorm",
)
"""Operations of which each row of the result is made of one row, by the begin of their names."""
GATHERS: Final = {
    "IndexSelectBackward0": "_raw_saved_index",
    "IndexBackward0": "_raw_saved_indices",
    "EmbeddingBackward0": "_raw_saved_indices",
}
REPEATS: Final = ("ExpandBackward0", "RepeatBackward0")


class Product(NamedTuple):
    """One node that multiplies."""

    node: Any
    flops: int
    first: Any
    second: Any
    """Its operands; None of what it has not kept."""


Same = tuple[float, int, int]
"""The fields of `settings.SameProducts`."""
Gathered = tuple[float, int, int, int, int]
"""The fields of `settings.GatheredProducts`."""


def products_among(nodes: Iterable[Any]) -> dict[str, Any]:
    """The fields of `PRODUCTS`; None each where there are none, or nothing may be read: within a
    dispatch mode, which would see it, on a device, or of a tensor's subclass."""
    torch = sys.modules["torch"]
    found = [] if is_dispatched(torch) else list(_products(nodes, torch))
    whole = sum(one.flops for one in found)
    if not whole or len(found) > MOST_PRODUCTS:
        return dict.fromkeys(PRODUCTS)
    return dict(zip(PRODUCTS, (_same(found, whole, torch), _gathered(found, whole)), strict=True))


def _products(nodes: Iterable[Any], torch: Any) -> Iterator[Product]:
    count = 0
    for node in nodes:
        if (names := OPERANDS.get(name_of(node))) is None:
            continue
        count += 1
        if count > MOST_PRODUCTS + 1:
            return
        first, second = (_kept(node, name, torch) for name in names)
        yield Product(node, _flops(node, first, second), first, second)


def _flops(node: Any, first: Any, second: Any) -> int:
    """Multiplications and additions; 0 where it has kept too little."""
    if name_of(node).startswith("Convolution"):
        inner = 0 if second is None else second.numel() // second.size(0)
    elif first is not None:
        inner = first.size(-1)
    else:
        inner = 0 if second is None else second.size(-2)
    return 2 * prod(_result(node)) * int(inner)


def _kept(node: Any, name: str, torch: Any) -> Any:
    """A plain tensor on the host that a node has kept as it was; None of what hooks have put away
    (a checkpoint would compute it anew), and where this torch does not show it."""
    try:
        saved = getattr(node, f"_raw_saved_{name}")
        held = saved.data if saved.unpack_hook is None else None
    except (AttributeError, RuntimeError):
        return None
    if held is None or not runs_no_code(type(held), torch):
        return None
    return held if held.device.type == "cpu" and held.layout is torch.strided else None


def _result(node: Any) -> tuple[int, ...]:
    """Shape of what a node made in the forward; (0,) where this torch does not record it."""
    metadata = getattr(node, "_input_metadata", None)
    return tuple(map(int, metadata[0].shape)) if metadata else (0,)


def _same(products: list[Product], whole: int, torch: Any) -> Same | None:
    """The part of all arithmetic that computes again what was computed, how many products there
    are, and how many different ones."""
    groups: dict[Any, list[Product]] = {}
    for one in products:
        if one.first is None:
            continue
        first = _looks(one.first)
        second = _weight_of(one.node) if one.second is None else _looks(one.second)
        if first is not None and second is not None:
            groups.setdefault((name_of(one.node), first, second), []).append(one)
    again = [group for group in groups.values() if len(group) > 1]
    saved = sum(one.flops for group in again for one in group[1:])
    if not saved:
        return None
    one, other, *_ = max(again, key=_flops_again)
    if not _are_same(one, other, torch):
        return None
    return saved / whole, len(products), len(products) - sum(len(group) - 1 for group in again)


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


def _are_same(one: Product, other: Product, torch: Any) -> bool:
    for mine, its in ((one.first, other.first), (one.second, other.second)):
        if mine is None or its is None or mine.data_ptr() == its.data_ptr():
            continue
        if mine.numel() <= MOST_COMPARED and not torch.equal(mine.detach(), its.detach()):
            return False
    return True


def _gathered(products: list[Product], whole: int) -> Gathered | None:
    """The part of all arithmetic that is done for rows which are there already; and of the product
    with most of it how many rows it has, how many different ones, inputs and outputs."""
    found: list[tuple[float, float, Product]] = []
    known: dict[Any, float] = {}
    for one in products:
        if name_of(one.node) not in ROW_BY_ROW or one.second is None:
            continue
        if one.second.size(0) < LEAST_WIDTH:
            continue
        source = _rows_of(one.node)
        part = 0.0 if source is None else 1.0 - _different(source, known)
        if part > 0:
            found.append((part * one.flops, part, one))
    if not found:
        return None
    _, part, largest = max(found, key=lambda each: each[0])
    inputs, outputs = map(int, largest.second.shape)
    rows = _result(largest.node)[0]
    saved = sum(flops for flops, _, _ in found) / whole
    return saved, rows, round((1.0 - part) * rows), inputs, outputs


def _rows_of(product: Any) -> Any:
    """The node that a product's rows come from; None where they are the program's own."""
    last = product.next_functions
    return last[1 if len(last) > 2 else 0][0]


def _different(node: Any, known: dict[Any, float]) -> float:
    """Of the rows that a node makes the part of which no two need be alike, 0 to 1, by what they
    were gathered from."""
    below: list[Any] = []
    while node is not None and node not in known and not is_leaf(node):
        below.append(node)
        name = name_of(node)
        if name in GATHERS or name in REPEATS or name == "CatBackward0":
            known[node] = _of_source(node, name, known)
            break
        if name in ROW_BY_ROW:
            node = _rows_of(node)
        elif name.startswith(ALONG_ROWS) and _keeps_rows(node, node.next_functions[0][0]):
            node = node.next_functions[0][0]
        else:
            break
    found = known.get(node, 1.0)
    known.update(dict.fromkeys(below, found))
    return found


def _keeps_rows(node: Any, below: Any) -> bool:
    """A view may put several rows into one."""
    return below is not None and _result(node)[-1:] == _result(below)[-1:]


def _of_source(node: Any, name: str, known: dict[Any, float]) -> float:
    if name in GATHERS:
        return _of_gather(node, name)
    if name in REPEATS:
        before, after = getattr(node, "_saved_self_sym_sizes", ()), _result(node)
        whole = before and before[-1] == after[-1] and prod(after)
        return prod(before) / prod(after) if whole else 1.0
    return _of_cat(node, known)


def _of_gather(node: Any, name: str) -> float:
    """By the indices, of which there is one tensor, along the rows."""
    try:
        saved = getattr(node, GATHERS[name])
        saved = saved[0] if isinstance(saved, (tuple, list)) and len(saved) == 1 else saved
        indices = saved.data if saved.unpack_hook is None else None
    except (AttributeError, RuntimeError):
        return 1.0
    if name == "IndexSelectBackward0" and _is_last_dimension(node):
        return 1.0
    torch: Any = sys.modules["torch"]
    if indices is None or not runs_no_code(type(indices), torch) or indices.device.type != "cpu":
        return 1.0
    count = indices.numel()
    if indices.dtype not in (torch.int64, torch.int32) or not 0 < count <= MOST_INDICES:
        return 1.0
    return float(torch.unique(indices).numel() / count)


def _of_cat(node: Any, known: dict[Any, float]) -> float:
    """Of rows that several were put together to: a layer's product is the sum of those of each, by
    their widths. What is too narrow to be worth it counts as it is."""
    shape = _result(node)
    if not _is_last_dimension(node):
        return 1.0
    parts = [below for below, _ in node.next_functions]
    widths = [_width(below) for below in parts]
    known_width = sum(width for width in widths if width is not None)
    unknown = sum(width is None for width in widths)
    if unknown > 1 or known_width > shape[-1]:
        return 1.0
    found = 0.0
    for below, width in zip(parts, widths, strict=True):
        width = shape[-1] - known_width if width is None else width
        narrow = below is None or width < LEAST_WIDTH
        found += width / shape[-1] * (1.0 if narrow else _different(below, known))
    return min(1.0, found)


def _is_last_dimension(node: Any) -> bool:
    """That which a node goes along, which some hold as a number without a sign."""
    dimension, dimensions = getattr(node, "_saved_dim", None), len(_result(node))
    return dimension is not None and dimension % (1 << 64) in (dimensions - 1, (1 << 64) - 1)


def _width(node: Any) -> int | None:
    """Of what a node made; None of what is no node of the graph."""
    return _result(node)[-1] if node is not None and not is_leaf(node) else None
