"""What the layers of a net compute, as a backward's graph shows it, and the same once more on ones:
in the format that they have, and in others that PyTorch offers on a CPU.

A layer is described by numbers alone, so that nothing of the graph is kept. It is computed by the
operators that autograd would call, outside of it, of as few samples as `at_most` says: its time
grows with them. Ones take as long as any numbers that are not denormal, and draw nothing at random.
"""

import sys
from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any, Final, NamedTuple

from .autocast import name_of
from .graph_rows import OPERANDS, held, inputs_of, result_of
from .repeated import TRANSPOSED
from .users import parameter_of


class Format(Enum):
    """How the operands of a layer are held."""

    NOW = 0
    CHANNELS_LAST = 1
    BF16 = 2
    """As `torch.autocast` has it, with weights that stay in float32; convolutions of pictures in
    channels_last as well."""


Run = Callable[[], None]
"""Its forward and its backward, once."""
CONVOLUTION: Final = "ConvolutionBackward0"
ATTENTION: Final = "ScaledDotProductFlashAttentionForCpuBackward0"
RECURRENT: Final = "MkldnnRnnLayerBackward0"
FEWEST_ROWS: Final = 16
"""Of a product or a picture that is cut: a kernel's block."""
FEWEST_TIMES: Final = 32
"""Of a recurrent layer that is cut."""
PICTURE: Final = 4
"""Dimensions of operands that channels_last is for."""


class Convolution(NamedTuple):
    """Of one to three dimensions, transposed or not."""

    operand: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    how: tuple[Any, ...]
    """Stride, padding, dilation, transposed, output padding and groups."""
    has_bias: bool
    makes_gradient: bool
    """Of its operand."""
    is_last: bool
    """It is in channels_last by now."""

    @property
    def flops(self) -> int:
        """Of the forward."""
        size = self.operand if self.how[3] else self.result
        return 2 * prod(size) * prod(self.weight[1:])

    def at_most(self, flops: int) -> "Convolution":
        """The same of fewer samples, and of fewer lines where one is too large."""
        samples, lines, *rest = self.operand[0], self.operand[2], *self.operand[3:]
        each = self.flops // samples
        fewer = min(samples, max(1, flops // max(1, each)))
        if each > flops:
            widest = 1 + self.how[2][0] * (self.weight[2] - 1)
            lines = min(lines, max(FEWEST_ROWS, widest, lines * flops // each))
        cut = lines / self.operand[2]
        result = (fewer, self.result[1], max(1, round(self.result[2] * cut)), *self.result[3:])
        return self._replace(operand=(fewer, self.operand[1], lines, *rest), result=result)

    def formats(self) -> tuple[Format, ...]:
        """In which it may be computed."""
        is_picture = len(self.operand) == PICTURE and not self.is_last
        last = (Format.CHANNELS_LAST,) if is_picture else ()
        return (Format.NOW, *last, Format.BF16)

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = torch.bfloat16 if form is Format.BF16 else torch.float32
        is_last = self.is_last or (form is not Format.NOW and len(self.operand) == PICTURE)
        order = torch.channels_last if is_last else torch.contiguous_format
        operand = _ones(self.operand, kind).contiguous(memory_format=order)
        weight = _ones(self.weight, torch.float32).contiguous(memory_format=order)
        bias = [self.result[1]] if self.has_bias else None
        operators, how = torch.ops.aten, self.how
        gradient = torch.ones_like(operators.convolution(operand, weight.to(kind), None, *how))
        wanted = [self.makes_gradient, True, self.has_bias]

        def run() -> None:
            cast = weight.to(kind)
            operators.convolution(operand, cast, None, *how)
            found = operators.convolution_backward(gradient, operand, cast, bias, *how, wanted)
            found[1].to(torch.float32)

        return run


class MatrixProduct(NamedTuple):
    """Of rows and a weight, or of two operands for each of some samples."""

    samples: int
    """0: rows and a weight."""
    rows: int
    inputs: int
    outputs: int
    is_transposed: bool
    """The weight is held as `nn.Linear` does."""
    makes_gradient: bool

    @property
    def flops(self) -> int:
        """Of the forward."""
        return 2 * max(1, self.samples) * self.rows * self.inputs * self.outputs

    def at_most(self, flops: int) -> "MatrixProduct":
        """The same of fewer samples or rows, and of fewer outputs where a row is too large."""
        each = max(1, flops // max(1, self.flops // max(1, self.samples or self.rows)))
        if self.samples:
            return self._replace(samples=min(self.samples, each))
        rows = min(self.rows, max(FEWEST_ROWS, each))
        outputs = max(FEWEST_ROWS, flops // max(1, 2 * rows * self.inputs))
        return self._replace(rows=rows, outputs=min(self.outputs, outputs))

    def formats(self) -> tuple[Format, ...]:
        """In which it may be computed."""
        return Format.NOW, Format.BF16

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = torch.bfloat16 if form is Format.BF16 else torch.float32
        lead = (self.samples,) if self.samples else ()
        first = _ones((*lead, self.rows, self.inputs), kind)
        shape = (self.outputs, self.inputs) if self.is_transposed else (self.inputs, self.outputs)
        second = _ones((*lead, *shape), kind if self.samples else torch.float32)
        gradient = _ones((*lead, self.rows, self.outputs), kind)
        product = torch.ops.aten.bmm if self.samples else torch.ops.aten.mm

        def run() -> None:
            cast = second.to(kind)
            cast = cast.transpose(-1, -2) if self.is_transposed else cast
            product(first, cast)
            if self.makes_gradient:
                product(gradient, cast.transpose(-1, -2))
            found = product(first.transpose(-1, -2), gradient)
            if not self.samples:
                found.to(torch.float32)

        return run


class Attention(NamedTuple):
    """In one call. In bf16 its backward takes up to 2.8 times as long (two cores without AMX)."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    is_causal: bool

    @property
    def flops(self) -> int:
        """Of the forward, all scores of a causal one too."""
        return 2 * prod(self.query[:-1]) * self.key[-2] * (self.query[-1] + self.value[-1])

    def at_most(self, flops: int) -> "Attention":
        """The same of fewer samples."""
        each = self.flops // self.query[0]
        fewer = min(self.query[0], max(1, flops // max(1, each)))
        query, key, value = ((fewer, *shape[1:]) for shape in (self.query, self.key, self.value))
        return Attention(query, key, value, self.is_causal)

    def formats(self) -> tuple[Format, ...]:
        """In which it may be computed."""
        return Format.NOW, Format.BF16

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = torch.bfloat16 if form is Format.BF16 else torch.float32
        operands = [_ones(shape, kind) for shape in self[:3]]
        gradient = _ones((*self.query[:-1], self.value[-1]), kind)
        forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

        def run() -> None:
            made = forward(*operands, 0.0, self.is_causal)
            backward(gradient, *operands, *made, 0.0, self.is_causal)

        return run


class Recurrent(NamedTuple):
    """One layer of an LSTM, in one direction, as oneDNN has it."""

    operand: tuple[int, ...]
    """Times first."""
    weights: tuple[tuple[int, ...], ...]
    state: tuple[int, ...]
    how: tuple[Any, ...]
    """Mode, hidden size and layers."""
    has_biases: bool
    is_batch_first: bool

    @property
    def flops(self) -> int:
        """Of the forward."""
        return 2 * prod(self.operand[:2]) * sum(map(prod, self.weights[:2]))

    def at_most(self, flops: int) -> "Recurrent":
        """The same of fewer times: samples side by side are what makes them fast, and its weights
        are packed once."""
        each = self.flops // self.operand[0]
        fewer = min(self.operand[0], max(FEWEST_TIMES, flops // max(1, each)))
        return self._replace(operand=(fewer, *self.operand[1:]))

    def formats(self) -> tuple[Format, ...]:
        """In which it may be computed."""
        return Format.NOW, Format.BF16

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = torch.bfloat16 if form is Format.BF16 else torch.float32
        operand = _ones(self.operand, kind)
        weights = [_ones(shape, torch.float32) for shape in self.weights]
        state = _ones(self.state, kind)
        forward, backward = (
            torch.ops.aten.mkldnn_rnn_layer,
            torch.ops.aten.mkldnn_rnn_layer_backward,
        )

        def run() -> None:
            cast = [one.to(kind) for one in weights]
            how, first = (*self.how, self.has_biases), self.is_batch_first
            made = forward(operand, *cast, state, state, False, [], *how, False, first, True)
            *seen, space = made
            backward(
                *(operand, *cast, state, state, *seen, *seen, False),
                *(*how, True, False, [], first, space),
            )

        return run


Layer = Convolution | MatrixProduct | Attention | Recurrent


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
    torch: Any = sys.modules["torch"]
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    how = tuple(getattr(node, f"_saved_{name}") for name in names)
    is_picture = operand.dim() == PICTURE
    return Convolution(
        tuple(map(int, operand.shape)),
        tuple(map(int, weight.shape)),
        result_of(node),
        how,
        len(below) > 2 and below[2][0] is not None,
        below[0][0] is not None,
        is_picture and not weight.is_contiguous() and _is_last(weight, torch),
    )


def _is_last(tensor: Any, torch: Any) -> bool:
    return bool(tensor.is_contiguous(memory_format=torch.channels_last))


def _matrix_product(node: Any) -> MatrixProduct | None:
    result, inputs = result_of(node), inputs_of(node)
    *_, first, second = (below for below, _ in node.next_functions)
    if not inputs or len(result) < 2 or _type_of(node) not in ("", "float32"):
        return None
    *lead, rows, outputs = result
    is_transposed = not lead and second is not None and name_of(second) == TRANSPOSED
    return MatrixProduct(
        lead[0] if lead else 0, rows, inputs, outputs, is_transposed, first is not None
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


def _type_of(node: Any) -> str:
    """Of what a node made in the forward; "" where this torch does not record it."""
    first = next(iter(getattr(node, "_input_metadata", None) or ()), None)
    return "" if first is None else str(first.dtype).removeprefix("torch.")


def _is_plain(tensor: Any) -> bool:
    torch: Any = sys.modules["torch"]
    return tensor.device.type == "cpu" and tensor.dtype is torch.float32


def _ones(shape: tuple[int, ...], kind: Any) -> Any:
    return sys.modules["torch"].ones(shape, dtype=kind, device="cpu")
