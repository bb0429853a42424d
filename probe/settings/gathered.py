"""Layers on rows that were gathered or repeated before them and not behind: a layer computes row by
row, so that on the nodes of a graph, and not on its edges, on the words of a small vocabulary, and
not on a text, on a grid, and not on the grid of each sample, or on a picture before it is made
larger, it computes less and gives the same."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any, Final

from .autocast import is_leaf, name_of
from .device_reads import GOLDEN, Answers, DeviceReads, place_of
from .graph_rows import (
    ELEMENT_BY_ELEMENT,
    OPERANDS,
    ROW_BY_ROW,
    Layer,
    Product,
    Rows,
    dimension_of,
    held,
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

LEAST_WIDTH: Final = 16
"""Of rows that are gathered: a product of fewer columns costs no more than gathering its result."""
MOST_WIDER: Final = 2
"""Times that a result may be as wide as the rows: then as much more is gathered behind the layer
(16 to 256, two cores: as slow and slower)."""
DEEPEST: Final = 64
"""Operations from a layer to what gathers its rows, at the most."""
FEWEST_ROWS: Final = 64
PLACES: Final = 8
"""The program's own rows are looked at there. Each is compared with all others: of n rows that are
alike each stands for 1 / n of them…"""
MOST_COMPARED: Final = 1 << 18
"""…where they hold so few numbers, 1 ms…"""
MOST_OF_GRAPH: Final = 1 << 19
"""…and no more than so many of a graph…"""
MOST_ROWS: Final = 4_096
"""…else so many are compared, 0.2 us each."""
MOST_UNEVEN: Final = 2
"""Times as often as another a row of a grid may be met at those places."""
WIDEST: Final = 64
"""Numbers in a row, at the most: coordinates, and what is made of them."""
ADDS: Final = "AddBackward0"
EMBEDDING: Final = "EmbeddingBackward0"
INDEX_SELECT: Final = "IndexSelectBackward0"
INDEX: Final = "IndexBackward0"
GATHERS: Final = (EMBEDDING, INDEX_SELECT, INDEX)
REPEATS: Final = ("ExpandBackward0", "RepeatBackward0")
CONVOLUTION: Final = "ConvolutionBackward0"
UPSAMPLES: Final = frozenset(
    f"Upsample{kind}"
    for kind in (
        *("Nearest1D", "Nearest2D", "Nearest3D", "NearestExact1D", "NearestExact2D"),
        *("NearestExact3D", "Linear1D", "Bilinear2D", "Bicubic2D", "Trilinear3D"),
    )
)
PUTS_TOGETHER: Final = "CatBackward0"


def gathered_of(
    products: Iterable[Product], whole: int, reads: DeviceReads | None = None
) -> Rows | Callable[[Answers], Rows | None] | None:
    """None where no layer has such rows; `whole` is the arithmetic of all products. With `reads` it
    may be known later."""
    rows = _Rows(reads)
    found: list[tuple[Part, Layer]] = []
    for one in reversed(list(products)):  # those nearest to the inputs first: each way is short
        if (upsampled := _of_upsampled(one)) is not None:
            found.append(upsampled)
        wide = result_of(one.node)[-1] > MOST_WIDER * one.inputs
        if name_of(one.node) in ROW_BY_ROW and one.inputs >= LEAST_WIDTH and not wide:
            found.append((rows.before(one.node), layer_of(one)))
    return rows_spared(found, whole)


class _Rows:
    """Of one graph: how many of a layer's rows there were before they were gathered, repeated, or
    given by the program."""

    def __init__(self, reads: DeviceReads | None) -> None:
        self._reads = reads
        self._own: dict[Any, Part] = {}
        """By the memory that they lie in."""
        self._known: dict[tuple[Any, bool], Part] = {}
        """Of each node on the way to others."""
        self._left = MOST_OF_GRAPH

    def before(self, product: Any) -> Part:
        """Of a product's rows, 0 to 1."""
        source = rows_of(product)
        return self._before(source) if source is not None else self._differ(product)

    def _before(self, node: Any, depth: int = 0) -> Part:
        """Of rows that were put together a product is the sum of those of each part; behind it, and
        behind what takes a row as a whole, they are no more apart."""
        by_element = True
        found: Part | None = None
        way: list[tuple[Any, bool]] = []
        while found is None and len(way) < DEEPEST:
            if node is None or is_leaf(node):
                found = 1.0
            elif (node, by_element) in self._known:
                found = self._known[node, by_element]
            else:
                way.append((node, by_element))
                by_element = by_element and is_any_of(node, ELEMENT_BY_ELEMENT)
                found = self._ends_at(node, way[-1][1], depth)
                node = rows_of(node) if name_of(node) in ROW_BY_ROW else _below(node)
        if found is None:
            return 1.0
        self._known.update(dict.fromkeys(way, found))
        return found

    def _ends_at(self, node: Any, by_element: bool, depth: int) -> Part | None:
        """None where the rows are those of the node below."""
        name = name_of(node)
        if name in GATHERS:
            return _of_gather(node, name)
        if name in REPEATS:
            return _of_repeat(node)
        if name == PUTS_TOGETHER:
            is_apart = by_element and depth < DEEPEST
            return self._of_parts(node, depth + 1) if is_apart else 1.0
        if name in ROW_BY_ROW:
            return self._differ(node) if rows_of(node) is None else None
        below = _below(node)
        if below is None or not (name == ADDS or is_row_by_row(node, below)):
            return 1.0
        return None

    def _of_parts(self, node: Any, depth: int) -> Part:
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
        known = [shape[-1] - known_width if width is None else width for width in widths]
        found: list[Part] = [
            1.0 if below is None or width < LEAST_WIDTH else self._before(below, depth)
            for below, width in zip(parts, known, strict=True)
        ]
        return combined(partial(_by_widths, known, shape[-1]), *found)

    def _differ(self, product: Any) -> Part:
        """Of the program's own rows, those that differ: the coordinates of a grid, repeated for
        each sample of a batch."""
        rows = kept(product, OPERANDS[name_of(product)][0], place_of(self._reads))
        if rows is None or rows.dim() != 2 or not len(rows) >= FEWEST_ROWS:
            return 1.0
        if rows.size(1) > WIDEST or not rows.size(1):
            return 1.0
        at = rows.data_ptr(), tuple(rows.shape), tuple(rows.stride()), rows.dtype
        if at not in self._own:
            self._left -= min(rows.numel(), MOST_COMPARED)
            if self._left < 0:
                return 1.0
            self._own[at] = self._read(rows.detach())
        return self._own[at]

    def _read(self, rows: Any) -> Part:
        if self._reads is None and rows.numel() <= MOST_COMPARED:
            return _differing([rows])
        if self._reads is None:
            size, each = len(rows), MOST_ROWS // PLACES
            begins = [number * (size // PLACES) for number in range(PLACES)]
            return _differing([rows[at : at + min(each, size // PLACES)] for at in begins])
        asked = self._reads.rows_of(rows)
        if asked is None:
            return 1.0
        return lambda answers: _differing(answers.parts_of(asked))


def _of_upsampled(product: Product) -> tuple[float, Layer] | None:
    """A convolution of single pixels right behind an upsampling: both are sums with weights, so
    that either may come first, and the fewer channels should be upsampled."""
    node = product.node
    if name_of(node) != CONVOLUTION:
        return None
    source, shape = node.next_functions[0][0], result_of(node)
    weight = held(node, "weight")
    if source is None or weight is None or not is_any_of(source, UPSAMPLES):
        return None
    single = max(weight.shape[2:]) == 1 and shape[2:] == result_of(source)[2:]
    before, after = sizes_before(source), result_of(source)
    if not single or shape[1] > product.inputs or len(before) != len(after):
        return None
    pixels = shape[0] * prod(shape[2:])
    layer = Layer(product.flops, pixels, product.inputs, shape[1])
    return min(1.0, prod(before) / max(1, prod(after))), layer


def _below(node: Any) -> Any:
    """What a node takes rows from; of a sum with a bias what is no bias."""
    if name_of(node) != ADDS:
        return node.next_functions[0][0]
    each = [below for below, _ in node.next_functions]
    is_bias = [below is not None and len(result_of(below)) == 1 for below in each]
    return each[is_bias.index(False)] if is_bias.count(True) == 1 else None


def _by_widths(widths: Iterable[int], whole: int, *parts: float) -> float:
    return min(1.0, sum(width / whole * one for width, one in zip(widths, parts, strict=True)))


def _differing(parts: Sequence[Any]) -> float:
    """Of rows those that differ; of parts of them, from several places, so many do at the most. All
    where they are not equally often there: few values make rows alike by chance, for which nothing
    is there that could be gathered (4,096 rows of 8 binary columns by `unique`: 0.8x)."""
    if len(parts) == 1:
        (rows,) = parts
        places = (int(len(rows) * (number * GOLDEN % 1.0)) for number in range(1, PLACES + 1))
        often = [int((rows == rows[at]).all(1).sum()) for at in places]
        return 1 / often[0] if min(often) == max(often) > 1 else 1.0
    held: Counter[bytes] = Counter()
    for part in parts:
        some = part[: MOST_ROWS // len(parts)].contiguous()
        size = some.element_size() * some.size(1)
        data = ctypes.string_at(some.data_ptr(), size * len(some))
        held.update(data[at : at + size] for at in range(0, len(data), size))
    is_even = max(held.values()) <= MOST_UNEVEN * min(held.values())
    return len(held) / held.total() if is_even else 1.0


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


def _width(node: Any) -> int | None:
    """Of what a node made; None of what is no node of the graph."""
    return result_of(node)[-1] if node is not None and not is_leaf(node) else None
