"""What the layers of a net compute, and the same once more on ones: in the format that they have,
and in others that PyTorch offers on a CPU.

A layer is described by numbers alone, so that nothing of the graph is kept. It is computed by the
operators that autograd would call, outside of it, of as few samples as `at_most` says: its time
grows with them. Ones take as long as any numbers that are not denormal, and draw nothing at random.
"""

import sys
from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any, Final, NamedTuple


class Format(Enum):
    """How the operands of a layer are held."""

    NOW = 0
    CHANNELS_LAST = 1
    BF16 = 2
    """As `torch.autocast` has it, with weights that stay in float32; convolutions of pictures in
    channels_last as well."""


Run = Callable[[], None]
"""Its forward and its backward, once."""
FEWEST_LINES: Final = 16
"""Of a picture that is cut."""
FEWEST_ROWS: Final = 128
"""Of a product that is cut, of its outputs and of an attention's queries: with fewer, packing and
casting a weight is most of what is timed."""
FEWEST_CHANNELS: Final = 64
"""Of a convolution whose results are cut."""
VECTOR: Final = 16
"""Numbers of float32 that AVX512 holds in one. With fewer channels a strided convolution of single
pixels crashes in channels_last: 2, 3, 4, 8, 12, 14 and 15 do, 1, 16, 17, 20, 24, 28 and 31 not."""
SAFE_CHANNELS: Final = 2 * VECTOR
"""From so many it is tried."""
WIDE: Final = 8
"""Of a depthwise kernel, half of what makes oneDNN hang: 15 numbers did, 14 did not."""
FEWEST_TIMES: Final = 32
"""Of a recurrent layer that is cut."""
PICTURE: Final = 4
"""Dimensions of operands that channels_last is for."""


class How(NamedTuple):
    """The rest of a convolution, as PyTorch's operators take it."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int


class Convolution(NamedTuple):
    """Of one to three dimensions, transposed or not."""

    operand: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    how: How
    has_bias: bool
    makes_gradient: bool
    """Of its operand."""
    learns: bool
    """It makes one of its weight."""
    is_last: bool
    """It is in channels_last by now."""
    may_be_last: bool
    """The net may be: not where it has convolutions of volumes, of which the call would fail."""

    @property
    def weights(self) -> tuple[Any, ...]:
        """What it is known by, whatever it is computed of."""
        return self.weight, self.how

    @property
    def elements(self) -> int:
        """Of its operand, its result and its weight."""
        return prod(self.operand) + prod(self.result) + prod(self.weight)

    @property
    def flops(self) -> int:
        """Of the forward."""
        size = self.operand if self.how.transposed else self.result
        return 2 * prod(size) * prod(self.weight[1:])

    @property
    def is_broken_in_last(self) -> bool:
        """oneDNN writes beyond the memory of a strided convolution of single pixels with few
        channels, as it makes its weight's gradient in channels_last in float32: a training was
        killed by a trial of a ResNet's shortcut of 3 (torch 2.13)."""
        pixels = prod(self.weight[2:]) == 1 and any(step > 1 for step in self.how.stride)
        return pixels and self.weight[1] < SAFE_CHANNELS

    @property
    def is_broken_in_bf16(self) -> bool:
        """oneDNN reads up to some KB beyond the memory of a dilated convolution of channels that
        are no whole vectors, as it makes its weight's gradient in bf16: where the next page is
        nobody's, the program is killed (torch 2.13: one process in 90 with 60 convolutions each,
        and with a fence behind each tensor 14 of 850 such layers: 17, 20, 30, 33 channels)."""
        dilated = any(step > 1 for step in self.how.dilation)
        reads_beyond = dilated and any(channels % VECTOR for channels in self.weight[:2])
        return reads_beyond or self._hangs_in_bf16 or self._skips_in_a_volume

    @property
    def _hangs_in_bf16(self) -> bool:
        """oneDNN never ends making code for a depthwise convolution in bf16 and channels_last whose
        kernel has a line of 15 numbers or more, of 2 to 16 channels: EEGNet's hung in a trial
        (torch 2.13)."""
        depthwise = self.how.groups > 1 and self.weight[1] == 1
        return depthwise and self.how.groups < SAFE_CHANNELS and self.weight[-1] >= WIDE

    @property
    def _skips_in_a_volume(self) -> bool:
        """oneDNN writes beyond its memory in bf16 for a volume's kernel of one number along an axis
        that it is strided along: 1 x 5 x 5 by steps of 3 (torch 2.13, two of 9,000 layers)."""
        axes = zip(self.weight[2:], self.how.stride, strict=True)
        return len(self.operand) > PICTURE and any(size == 1 < step for size, step in axes)

    def at_most(self, flops: int) -> "Convolution":
        """The same with fewer channels in its result, then of fewer samples, and of fewer lines
        where one is too large."""
        if not self.how.transposed and self.how.groups == 1:
            channels = _fitting(self.result[1], self.flops, flops, FEWEST_CHANNELS)
            if channels < self.result[1]:
                channels -= channels % VECTOR  # others break in bf16
            result = (self.result[0], channels, *self.result[2:])
            self = self._replace(weight=(channels, *self.weight[1:]), result=result)
        samples, lines, *rest = self.operand[0], self.operand[2], *self.operand[3:]
        fewer = _fitting(samples, self.flops, flops)
        widest = 1 + self.how.dilation[0] * (self.weight[2] - 1)
        lines = _fitting(lines, self.flops // samples, flops, max(FEWEST_LINES, widest))
        cut = lines / self.operand[2]
        result = (fewer, self.result[1], max(1, round(self.result[2] * cut)), *self.result[3:])
        return self._replace(operand=(fewer, self.operand[1], lines, *rest), result=result)

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = _type_in(form)
        is_last = self.is_last or (form is not Format.NOW and self.may_be_last)
        order = torch.channels_last if is_last else torch.contiguous_format
        operand = _ones(self.operand, kind).contiguous(memory_format=order)
        weight = _ones(self.weight, torch.float32).contiguous(memory_format=order)
        bias = [self.result[1]] if self.has_bias else None
        operators, how = torch.ops.aten, self.how
        gradient = torch.ones_like(operators.convolution(operand, weight.to(kind), None, *how))
        wanted = [self.makes_gradient, self.learns, self.has_bias]

        def run() -> None:
            cast = weight.to(kind)
            operators.convolution(operand, cast, None, *how)
            found = operators.convolution_backward(gradient, operand, cast, bias, *how, wanted)
            if self.learns:
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
    learns: bool

    @property
    def weights(self) -> tuple[Any, ...]:
        """What it is known by, whatever it is computed of."""
        return () if self.samples else (self.inputs, self.outputs)

    @property
    def elements(self) -> int:
        """Of its operands and its result."""
        rows, outputs = self.rows, self.outputs
        each = rows * self.inputs + self.inputs * outputs + rows * outputs
        return max(1, self.samples) * each

    @property
    def flops(self) -> int:
        """Of the forward."""
        return 2 * max(1, self.samples) * self.rows * self.inputs * self.outputs

    def at_most(self, flops: int) -> "MatrixProduct":
        """The same of fewer samples, then with fewer outputs, then of fewer rows."""
        if self.samples:
            self = self._replace(samples=_fitting(self.samples, self.flops, flops))
        left = max(1, flops // max(1, 2 * max(1, self.samples) * self.inputs))
        outputs = min(self.outputs, max(FEWEST_ROWS, left // self.rows))
        rows = min(self.rows, max(FEWEST_ROWS, left // outputs))
        return self._replace(rows=rows, outputs=outputs)

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = _type_in(form)
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
            if self.learns:
                found = product(first.transpose(-1, -2), gradient)
                if not self.samples:
                    found.to(torch.float32)

        return run


class Attention(NamedTuple):
    """In one call. In bf16 its backward takes four times as long and more (two cores, no AMX)."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    is_causal: bool

    @property
    def weights(self) -> tuple[Any, ...]:
        """What it is known by, whatever it is computed of."""
        return (self.query[-1],)

    @property
    def elements(self) -> int:
        """Of its operands and its result."""
        return 2 * prod(self.query) + prod(self.key) + prod(self.value)

    @property
    def flops(self) -> int:
        """Of the forward, all scores of a causal one too."""
        return 2 * prod(self.query[:-1]) * self.key[-2] * (self.query[-1] + self.value[-1])

    def at_most(self, flops: int) -> "Attention":
        """The same of fewer samples, and with fewer queries where one is too large."""
        fewer = _fitting(self.query[0], self.flops, flops)
        query, key, value = ((fewer, *shape[1:]) for shape in (self.query, self.key, self.value))
        queries = _fitting(query[-2], self.flops // self.query[0], flops, FEWEST_ROWS)
        query = (*query[:-2], queries, query[-1])
        return Attention(query, key, value, self.is_causal)

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = _type_in(form)
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
    shapes: tuple[tuple[int, ...], ...]
    """Of its weights."""
    state: tuple[int, ...]
    how: tuple[Any, ...]
    """Mode, hidden size and layers."""
    has_biases: bool
    is_batch_first: bool

    @property
    def weights(self) -> tuple[Any, ...]:
        """What it is known by, whatever it is computed of."""
        return self.shapes

    @property
    def elements(self) -> int:
        """Of its operand, its gates at all times, and its weights."""
        gates = self.operand[0] * self.operand[1] * self.shapes[0][0]
        return prod(self.operand) + gates + sum(map(prod, self.shapes))

    @property
    def flops(self) -> int:
        """Of the forward."""
        return 2 * prod(self.operand[:2]) * sum(map(prod, self.shapes[:2]))

    def at_most(self, flops: int) -> "Recurrent":
        """The same of fewer times: samples side by side are what makes them fast, and its weights
        are packed once."""
        fewer = _fitting(self.operand[0], self.flops, flops, FEWEST_TIMES)
        return self._replace(operand=(fewer, *self.operand[1:]))

    def made(self, form: Format) -> Run:
        """Its operands, and what computes with them."""
        torch: Any = sys.modules["torch"]
        kind = _type_in(form)
        operand = _ones(self.operand, kind)
        weights = [_ones(shape, torch.float32) for shape in self.shapes]
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


def formats_of(layer: Layer) -> tuple[Format, ...]:
    """In which it may be computed."""
    orders = isinstance(layer, Convolution) and layer.may_be_last and not layer.is_last
    return (Format.NOW, *((Format.CHANNELS_LAST,) if orders else ()), Format.BF16)


def _fitting(count: int, whole: int, most: int, fewest: int = 1) -> int:
    """How many of so many, which take `whole` together, take no more than `most`; `fewest` at the
    least, as far as there are so many."""
    return min(count, max(fewest, count * most // max(1, whole)))


def _type_in(form: Format) -> Any:
    torch: Any = sys.modules["torch"]
    return torch.bfloat16 if form is Format.BF16 else torch.float32


def _ones(shape: tuple[int, ...], kind: Any) -> Any:
    return sys.modules["torch"].ones(shape, dtype=kind, device="cpu")
