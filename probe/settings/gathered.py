"""Layers on rows that were gathered or repeated before them and not behind: a layer computes row by
row, so that on the nodes of a graph, and not on its edges, or on the words of a small vocabulary,
and not on a text, it computes less and gives the same."""

from collections.abc import Iterable
from math import prod
from typing import Any, Final

from .autocast import is_leaf, name_of
from .graph_rows import (
    ELEMENT_BY_ELEMENT,
    ROW_BY_ROW,
    Layer,
    Product,
    Rows,
    dimension_of,
    is_last_dimension,
    is_row_by_row,
    largest_of,
    layer_of,
    result_of,
    rows_of,
    sizes_before,
)

LEAST_WIDTH: Final = 16
"""Of rows that are gathered: a product of fewer columns costs no more than gathering its result."""
MOST_WIDER: Final = 2
"""Times that a result may be as wide as the rows: then as much more is gathered behind the layer
(16 to 256, two cores: as slow and slower)."""
DEEPEST: Final = 64
"""Operations from a layer to what gathers its rows, at the most."""
EMBEDDING: Final = "EmbeddingBackward0"
INDEX_SELECT: Final = "IndexSelectBackward0"
INDEX: Final = "IndexBackward0"
GATHERS: Final = (EMBEDDING, INDEX_SELECT, INDEX)
REPEATS: Final = ("ExpandBackward0", "RepeatBackward0")
PUTS_TOGETHER: Final = "CatBackward0"


def gathered_of(products: Iterable[Product], whole: int) -> Rows | None:
    """None where no layer has such rows; `whole` is the arithmetic of all products."""
    found: list[tuple[float, Layer]] = []
    for one in products:
        source = rows_of(one.node) if name_of(one.node) in ROW_BY_ROW else None
        wide = result_of(one.node)[-1] > MOST_WIDER * one.inputs
        if source is not None and one.inputs >= LEAST_WIDTH and not wide:
            found.append((1.0 - _part_before(source), layer_of(one)))
    return largest_of(found, whole)


def _part_before(node: Any, depth: int = 0) -> float:
    """Of the rows that a node made, how many there were before they were gathered or repeated, 0 to
    1. Of rows that were put together a product is the sum of those of each part; behind it, and
    behind what takes a row as a whole, they are no more apart."""
    by_element = True
    while node is not None and not is_leaf(node) and depth < DEEPEST:
        name = name_of(node)
        if name in GATHERS:
            return _of_gather(node, name)
        if name in REPEATS:
            return _of_repeat(node)
        if name == PUTS_TOGETHER:
            return _of_parts(node, depth + 1) if by_element else 1.0
        by_element = by_element and name.startswith(ELEMENT_BY_ELEMENT)
        if name in ROW_BY_ROW:
            node = rows_of(node)
        elif is_row_by_row(node, node.next_functions[0][0]):
            node = node.next_functions[0][0]
        else:
            return 1.0
        depth += 1
    return 1.0


def _of_gather(node: Any, name: str) -> float:
    """No more than all that it could gather from: the layer goes before it over all of these."""
    shape = result_of(node)
    rows = prod(shape[:-1])
    if name == EMBEDDING:
        before = int(getattr(node, "_saved_weight_sym_argsize_0", 0))
        return min(1.0, before / rows) if before and rows else 1.0
    sizes = sizes_before(node)
    if len(sizes) < 2 or len(shape) < 2 or sizes[-1] != shape[-1] or not rows:
        return 1.0
    if name == INDEX_SELECT:
        along = dimension_of(node, len(shape))
        return min(1.0, sizes[along] / shape[along]) if along < len(shape) - 1 else 1.0
    return min(1.0, sizes[0] / rows) if len(sizes) == 2 else 1.0


def _of_repeat(node: Any) -> float:
    before, after = sizes_before(node), result_of(node)
    rows = prod(after)
    return min(1.0, prod(before) / rows) if rows and before[-1:] == after[-1:] else 1.0


def _of_parts(node: Any, depth: int) -> float:
    """By their widths. What is too narrow to be worth it counts as it is."""
    shape = result_of(node)
    if not is_last_dimension(node):
        return 1.0
    parts = [below for below, _ in node.next_functions]
    widths = [_width(below) for below in parts]
    known_width = sum(width for width in widths if width is not None)
    unknown = sum(width is None for width in widths)
    if unknown > 1 or known_width > shape[-1] or not shape[-1]:
        return 1.0
    found = 0.0
    for below, width in zip(parts, widths, strict=True):
        width = shape[-1] - known_width if width is None else width
        narrow = below is None or width < LEAST_WIDTH
        found += width / shape[-1] * (1.0 if narrow else _part_before(below, depth))
    return min(1.0, found)


def _width(node: Any) -> int | None:
    """Of what a node made; None of what is no node of the graph."""
    return result_of(node)[-1] if node is not None and not is_leaf(node) else None
