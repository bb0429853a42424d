"""Layers on rows that were gathered or repeated before them and not behind: of rows that come from
fewer ones (the nodes of a graph for its edges, the words of a vocabulary for a text) a layer gives
no more different results than these, since it computes row by row."""

import sys
from collections.abc import Iterable
from math import prod
from typing import Any, Final

from ..loaders import runs_no_code
from .autocast import is_leaf, name_of
from .graph_rows import (
    ALONG_ROWS,
    ROW_BY_ROW,
    Product,
    Rows,
    is_last_dimension,
    keeps_rows,
    largest_of,
    result_of,
    rows_of,
)

MOST_INDICES: Final = 1 << 18
"""Indices of which the different ones are counted, 1 to 5 ms; of more it is not known."""
LEAST_WIDTH: Final = 16
"""Of rows that are gathered: a product of fewer columns costs no more than gathering its result."""
GATHERS: Final = {
    "IndexSelectBackward0": "_raw_saved_index",
    "IndexBackward0": "_raw_saved_indices",
    "EmbeddingBackward0": "_raw_saved_indices",
}
REPEATS: Final = ("ExpandBackward0", "RepeatBackward0")


def gathered_of(products: Iterable[Product], whole: int) -> Rows | None:
    """None where no layer has such rows; `whole` is the arithmetic of all products."""
    known: dict[Any, float] = {}
    found: list[tuple[float, Product]] = []
    for one in products:
        if name_of(one.node) in ROW_BY_ROW:
            source = rows_of(one.node)
            if source is not None and one.inputs >= LEAST_WIDTH:
                found.append((1.0 - _different(source, known), one))
    return largest_of(found, whole)


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
            node = rows_of(node)
        elif name.startswith(ALONG_ROWS) and keeps_rows(node, node.next_functions[0][0]):
            node = node.next_functions[0][0]
        else:
            break
    found = known.get(node, 1.0)
    known.update(dict.fromkeys(below, found))
    return found


def _of_source(node: Any, name: str, known: dict[Any, float]) -> float:
    if name in GATHERS:
        return _of_gather(node, name)
    if name in REPEATS:
        before, after = getattr(node, "_saved_self_sym_sizes", ()), result_of(node)
        whole = before and before[-1] == after[-1] and prod(after)
        return prod(before) / prod(after) if whole else 1.0
    return _of_cat(node, known)


def _of_gather(node: Any, name: str) -> float:
    counted = different_in(node, name)
    if counted is not None:
        return counted[0] / counted[1]
    # No more than there are to gather from, one tensor of indices going along the first dimension.
    sizes: tuple[int, ...] = getattr(node, "_saved_self_sym_sizes", ())
    rows = result_of(node)
    along_first = getattr(node, "_saved_dim", 0) == 0 and len(sizes) == len(rows) and rows[0]
    return min(1.0, sizes[0] / rows[0]) if along_first else 1.0


def different_in(node: Any, name: str) -> tuple[int, int] | None:
    """How many different rows a node has gathered by one tensor of indices, and how many indices
    there are; None where that is not known."""
    try:
        saved = getattr(node, GATHERS[name])
        saved = saved[0] if isinstance(saved, (tuple, list)) and len(saved) == 1 else saved
        indices = saved.data if saved.unpack_hook is None else None
    except (AttributeError, RuntimeError):
        return None
    if name == "IndexSelectBackward0" and is_last_dimension(node):
        return None
    torch: Any = sys.modules["torch"]
    if indices is None or not runs_no_code(type(indices), torch) or indices.device.type != "cpu":
        return None
    if indices.dtype not in (torch.int64, torch.int32) or not 0 < indices.numel() <= MOST_INDICES:
        return None
    return int(torch.unique(indices).numel()), int(indices.numel())


def _of_cat(node: Any, known: dict[Any, float]) -> float:
    """Of rows that several were put together to: a layer's product is the sum of those of each, by
    their widths. What is too narrow to be worth it counts as it is."""
    shape = result_of(node)
    if not is_last_dimension(node):
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


def _width(node: Any) -> int | None:
    """Of what a node made; None of what is no node of the graph."""
    return result_of(node)[-1] if node is not None and not is_leaf(node) else None
