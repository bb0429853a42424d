"""What a node of a backward's graph shows of the rows that it made: their shape, what they were
made of, and what it has kept of them."""

import sys
from collections.abc import Collection, Sequence
from math import prod
from typing import Any, Final, NamedTuple

from ..loaders import runs_no_code
from .autocast import name_of
from .users import parameter_of

OPERANDS: Final = {
    "AddmmBackward0": ("mat1", "mat2"),
    "MmBackward0": ("self", "mat2"),
    "BmmBackward0": ("self", "mat2"),
    "ConvolutionBackward0": ("input", "weight"),
}
"""What each keeps of its operands, rows first: each if the other wants a gradient."""
ROW_BY_ROW: Final = frozenset({"AddmmBackward0", "MmBackward0"})
VIEWS: Final = (
    *("View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Clone", "ToCopy", "Alias"),
)
ELEMENT_BY_ELEMENT: Final = (
    *VIEWS,
    *("Relu", "Gelu", "Silu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Softplus", "Hardtanh"),
)
"""Operations of which each element of the result is made of one."""
LAYER_NORM: Final = "NativeLayerNormBackward0"


Rows = tuple[float, int, int, int, int]
"""The fields of `settings.RowProducts`."""


class Product(NamedTuple):
    """One node that multiplies."""

    node: Any
    flops: int
    inputs: int
    """Of what is summed for each of its results; 0 where that is not known."""
    first: Any
    second: Any
    """Its operands where they may be read; None of what it has not kept."""


class Layer(NamedTuple):
    """What a product does to rows. It holds no node, which would keep the graph."""

    flops: int
    rows: int
    inputs: int
    outputs: int


def kept(node: Any, name: str, place: str = "cpu") -> Any:
    """A plain tensor on a device of that type that a node has kept as it was; None of what hooks
    have put away (a checkpoint would compute it anew), of what has no memory at present (FSDP's
    parameters between forward and backward), and where this torch does not show it."""
    found = held(node, name)
    if found is None or found.layout is not sys.modules["torch"].strided:
        return None
    if found.device.type != place:
        return None
    last = found.storage_offset() + span_of(found)
    return found if found.untyped_storage().nbytes() >= last * found.element_size() else None


def span_of(tensor: Any) -> int:
    """Elements of memory from a tensor's first to its last; 0 of one that has none."""
    return span(tensor.shape, tensor.stride()) if tensor.numel() else 0


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The same of some elements that lie so."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def held(node: Any, name: str) -> Any:
    """The same on any device and of any layout, of which the shape may be read."""
    try:
        saved = getattr(node, f"_raw_saved_{name}")
        found = saved.data if saved.unpack_hook is None else None
    except (AttributeError, RuntimeError):
        return None
    plain = found is not None and runs_no_code(type(found), sys.modules["torch"])
    return found if plain else None


def inputs_of(node: Any) -> int:
    """How many products are summed for each result of a node that multiplies; 0 where that is not
    known. A shape is read, wherever the tensor lies."""
    first, second = OPERANDS[name_of(node)]
    if name_of(node).startswith("Convolution"):
        weight = parameter_of(node.next_functions[1][0]) if node.next_functions[1][0] else None
        weight = held(node, second) if weight is None else weight
        return 0 if weight is None else weight.numel() // weight.size(0)
    try:
        sizes = getattr(node, f"_saved_{first}_sym_sizes", ())
        return int(sizes[-1] if sizes else getattr(node, f"_saved_{second}_sym_sizes")[-2])
    except (AttributeError, RuntimeError):
        found = held(node, first)
        return 0 if found is None else int(found.size(-1))


def flops_of(product: Any) -> int:
    """Of the forward of a node that multiplies; 0 where its shapes are not known."""
    return 2 * prod(result_of(product)) * inputs_of(product)


def result_of(node: Any) -> tuple[int, ...]:
    """Shape of what a node made in the forward, of one number too; (0,) where this torch does not
    record it, or it has none (a nested tensor, a first result that nothing used)."""
    first = next(iter(getattr(node, "_input_metadata", None) or ()), None)
    try:
        return (0,) if first is None else tuple(map(int, first.shape)) or (1,)
    except (RuntimeError, TypeError):
        return (0,)


def sizes_before(node: Any) -> tuple[int, ...]:
    """Shape of what a node picked or repeated; () where it does not hold it."""
    try:
        return tuple(map(int, getattr(node, "_saved_self_sym_sizes", ())))
    except (RuntimeError, TypeError):
        return ()


def dimension_of(node: Any, dimensions: int) -> int:
    """That of so many which a node goes along; the last where it does not tell. Some hold a
    negative one as a number without a sign."""
    dimension = int(getattr(node, "_saved_dim", -1)) % (1 << 64)
    return dimension if dimension < 1 << 63 else dimension - (1 << 64) + dimensions


def is_last_dimension(node: Any) -> bool:
    """A node goes along that one of its result."""
    dimensions = len(result_of(node))
    return hasattr(node, "_saved_dim") and dimension_of(node, dimensions) == dimensions - 1


def is_row_by_row(node: Any, below: Any) -> bool:
    """Each row of what a node made is made of one row of what another did. A view may put several
    rows into one, and a layer normalises over several dimensions."""
    if below is None or result_of(node)[-1:] != result_of(below)[-1:]:
        return False
    if name_of(node) == LAYER_NORM:
        return len(getattr(node, "_saved_normalized_shape", ())) == 1
    return is_any_of(node, ELEMENT_BY_ELEMENT)


def is_any_of(node: Any, names: Collection[str]) -> bool:
    """It is the backward of one of these operations, and not of their derivative, whose node has
    the gradient for its first input and a name that begins alike."""
    name, _, number = name_of(node).partition("Backward")
    return name in names and (not number or number.isdigit())


def rows_of(product: Any) -> Any:
    """The node that a product's rows come from; None where they are the program's own."""
    last = product.next_functions
    return last[1 if len(last) > 2 else 0][0]


def layer_of(product: Product) -> Layer:
    """The same product."""
    shape = result_of(product.node)
    return Layer(product.flops, shape[0], product.inputs, shape[-1])


def largest_of(found: list[tuple[float, Layer]], whole: int) -> Rows | None:
    """Of layers, each with the part of its rows that need not be: of all arithmetic that part,
    and of the one with most of it how many rows it has, how many are needed, inputs and outputs."""
    saved = [(part * one.flops, part, one) for part, one in found if part > 0]
    if not saved:
        return None
    _, part, largest = max(saved, key=lambda each: each[0])
    saved_part = sum(flops for flops, *_ in saved) / whole
    needed = round((1 - part) * largest.rows)
    return saved_part, largest.rows, needed, largest.inputs, largest.outputs
