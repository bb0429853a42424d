"""The layers of a net, as the graph of a backward shows them."""

import sys
from typing import Any, Final

from .autocast import name_of
from .graph_rows import OPERANDS, held, inputs_of, result_of
from .layers import PICTURE, Attention, Convolution, How, Layer, MatrixProduct, Recurrent
from .repeated import TRANSPOSED
from .users import parameter_of

CONVOLUTION: Final = "ConvolutionBackward0"
ATTENTION: Final = "ScaledDotProductFlashAttentionForCpuBackward0"
RECURRENT: Final = "MkldnnRnnLayerBackward0"


def layer_of(node: Any) -> Layer | None:
    """What a node of a graph of float32 on the CPU multiplies; None of another one, and where its
    shapes are not known."""
    name = name_of(node)
    try:
        if name == CONVOLUTION:
            return _convolution(node)
        if name in OPERANDS:
            return _matrix_product(node)
        if name == ATTENTION:
            return _attention(node)
        return _recurrent(node) if name == RECURRENT else None
    except (AttributeError, RuntimeError):
        return None


def _convolution(node: Any) -> Convolution | None:
    below = node.next_functions
    operand = held(node, "input")
    weight = parameter_of(below[1][0]) if below[1][0] is not None else None
    weight = held(node, "weight") if weight is None else weight
    if operand is None or not _is_plain(operand) or weight is None or not _is_plain(weight):
        return None
    how = How(*(getattr(node, f"_saved_{name}") for name in How._fields))
    is_picture = operand.dim() == PICTURE
    return Convolution(
        tuple(map(int, operand.shape)),
        tuple(map(int, weight.shape)),
        result_of(node),
        how,
        len(below) > 2 and below[2][0] is not None,
        below[0][0] is not None,
        below[1][0] is not None,
        is_picture and (_is_last(operand) or _is_last(weight)),
        is_picture,
    )


def _is_last(tensor: Any) -> bool:
    """Filters of one pixel, and those of one channel, are so in either order."""
    last = sys.modules["torch"].channels_last
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=last)


def _matrix_product(node: Any) -> MatrixProduct | None:
    result, inputs = result_of(node), inputs_of(node)
    *_, first, second = (below for below, _ in node.next_functions)
    if not inputs or len(result) < 2 or not _is_made_here(node):
        return None
    operands = (held(node, name) for name in OPERANDS[name_of(node)])
    if not all(one is None or _is_plain(one) for one in operands):
        return None
    *lead, rows, outputs = result
    is_transposed = not lead and second is not None and name_of(second) == TRANSPOSED
    return MatrixProduct(
        lead[0] if lead else 0,
        rows,
        inputs,
        outputs,
        is_transposed,
        first is not None,
        second is not None,
    )


def _attention(node: Any) -> Attention | None:
    operands = [held(node, name) for name in ("query", "key", "value")]
    if not all(one is not None and _is_plain(one) for one in operands):
        return None
    query, key, value = (tuple(map(int, one.shape)) for one in operands)
    return Attention(query, key, value, bool(node._saved_is_causal))


def _recurrent(node: Any) -> Recurrent | None:
    operand, state = held(node, "input"), held(node, "hx_")
    weights = [held(node, f"weight{number}") for number in range(4)]
    whole = [operand, state, *weights]
    if not all(one is not None and _is_plain(one) for one in whole):
        return None
    return Recurrent(
        tuple(map(int, operand.shape)),
        tuple(tuple(map(int, one.shape)) for one in weights),
        tuple(map(int, state.shape)),
        (node._saved_mode, node._saved_hidden_size, node._saved_num_layers),
        bool(node._saved_has_biases),
        bool(node._saved_batch_first),
    )


def _is_made_here(node: Any) -> bool:
    """A node's result is of float32 on the CPU, where this torch records that."""
    torch: Any = sys.modules["torch"]
    first = next(iter(getattr(node, "_input_metadata", None) or ()), None)
    return first is None or (first.device.type == "cpu" and first.dtype is torch.float32)


def _is_plain(tensor: Any) -> bool:
    torch: Any = sys.modules["torch"]
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.dtype is torch.float32
    )
