"""What the layers of a net compute, as its graph shows it, and the same once more."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from gpuwatch.probe.settings.layers import (
    Attention,
    Convolution,
    Format,
    Layer,
    MatrixProduct,
    Recurrent,
    formats_of,
)
from gpuwatch.probe.settings.net_layers import layer_of
from gpuwatch.probe.settings.users import users_below

Made = Callable[[], torch.Tensor]


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def in_net(net: nn.Module, *shape: int) -> Made:
    return lambda: cast("torch.Tensor", net(leaf(*shape)))


def attended() -> torch.Tensor:
    query, key = leaf(2, 4, 24, 16), leaf(2, 4, 40, 16)
    return scaled_dot_product_attention(query, key, key)


def recurrent() -> torch.Tensor:
    return cast("torch.Tensor", nn.LSTM(8, 16)(leaf(70, 3, 8))[0])


MADE: dict[str, tuple[Made, type]] = {
    "pictures": (in_net(nn.Conv2d(3, 8, 3, stride=2, padding=1), 4, 3, 40, 36), Convolution),
    "depthwise": (in_net(nn.Conv2d(8, 8, 5, groups=8, bias=False), 4, 8, 24, 24), Convolution),
    "dilated": (in_net(nn.Conv2d(4, 8, 3, padding=12, dilation=12), 2, 4, 64, 64), Convolution),
    "transposed": (in_net(nn.ConvTranspose2d(8, 4, 4, 2, 1), 3, 8, 20, 20), Convolution),
    "sequences": (in_net(nn.Conv1d(4, 8, 3, dilation=4), 2, 4, 90), Convolution),
    "volumes": (in_net(nn.Conv3d(2, 4, 3), 2, 2, 18, 20, 22), Convolution),
    "linear": (in_net(nn.Linear(12, 300), 500, 12), MatrixProduct),
    "matrix": (lambda: leaf(500, 12) @ leaf(12, 300), MatrixProduct),
    "batched": (lambda: leaf(6, 40, 12) @ leaf(6, 12, 20), MatrixProduct),
    "attention": (attended, Attention),
    "recurrent": (recurrent, Recurrent),
}


def layer_in(made: Made) -> Layer:
    seen = map(layer_of, users_below(made().sum().grad_fn)[1])
    return next(layer for layer in seen if layer is not None)


@pytest.mark.parametrize("name", MADE)
def test_a_layer_is_known_by_its_graph_and_its_arithmetic(name: str) -> None:
    made, kind = MADE[name]
    layer = layer_in(made)
    assert isinstance(layer, kind)
    own = {"attention": 2 * 2 * 2 * 4 * 24 * 40 * 16, "recurrent": 2 * 70 * 3 * 4 * 16 * (8 + 16)}
    with FlopCounterMode(display=False) as counter:
        made()
    assert layer.flops == own.get(name, counter.get_total_flops())  # torch has none for these two


@pytest.mark.parametrize("name", MADE)
def test_it_is_computed_in_each_format_and_nothing_is_drawn(name: str) -> None:
    """The program's random numbers stay as they are, bit for bit."""
    layer, state = layer_in(MADE[name][0]), torch.get_rng_state()
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for form in formats_of(layer):
        layer.made(form)()
    assert torch.equal(before, torch.get_rng_state())
    torch.set_rng_state(state)


@pytest.mark.parametrize("name", MADE)
def test_a_part_of_it_is_the_same_layer_with_less_arithmetic(name: str) -> None:
    layer = layer_in(MADE[name][0])
    part = layer.at_most(layer.flops // 3)
    assert type(part) is type(layer)
    assert 0 < part.flops < layer.flops
    for form in formats_of(part):
        part.made(form)()
    assert layer.at_most(10 * layer.flops) == layer


def test_a_large_product_keeps_its_rows_and_a_large_convolution_its_samples() -> None:
    """Of few rows packing and casting the weight is timed: a head of 32,000 words was 1,377 ms for
    238, and 2.7x forecast for 1.6x."""
    head = MatrixProduct(0, 512, 256, 32_000, True, True, True).at_most(300_000_000)
    assert (head.rows, head.inputs) == (512, 256)
    assert head.outputs >= 128
    wide = layer_in(in_net(nn.Conv2d(256, 256, 3, padding=1), 16, 256, 8, 8))
    part = wide.at_most(wide.flops // 4)
    assert isinstance(part, Convolution)
    assert (part.operand[0], part.weight[0]) == (16, 64)


def test_a_net_in_channels_last_is_known_by_its_input_too() -> None:
    """Filters of one pixel have either order: such a net was told to be in channels_last."""
    net = nn.Conv2d(8, 16, 1)
    turned = torch.randn(2, 12, 12, 8).permute(0, 3, 1, 2)
    layer = layer_in(lambda: net(turned))
    assert isinstance(layer, Convolution)
    assert layer.is_last
    assert Format.CHANNELS_LAST not in formats_of(layer)


def test_only_pictures_that_are_not_so_by_now_are_tried_in_channels_last() -> None:
    assert Format.CHANNELS_LAST in formats_of(layer_in(MADE["pictures"][0]))
    assert Format.CHANNELS_LAST not in formats_of(layer_in(MADE["sequences"][0]))
    net = cast("Any", nn.Conv2d(8, 8, 3)).to(memory_format=torch.channels_last)
    assert Format.CHANNELS_LAST not in formats_of(layer_in(in_net(net, 2, 8, 12, 12)))


def test_a_first_layer_makes_no_gradient_for_its_input() -> None:
    net = nn.Linear(12, 20)
    first, later = layer_in(lambda: net(torch.randn(64, 12))), layer_in(in_net(net, 64, 12))
    assert isinstance(first, MatrixProduct)
    assert isinstance(later, MatrixProduct)
    assert (first.makes_gradient, later.makes_gradient) == (False, True)
    assert first.is_transposed


@pytest.mark.parametrize(
    "made",
    [
        lambda: nn.Linear(4, 4).double()(torch.randn(2, 4).double()),
        lambda: nn.Conv2d(1, 2, 3).double()(torch.randn(1, 1, 8, 8).double()),
        lambda: leaf(4, 4).relu(),
        lambda: torch.sparse.mm(torch.eye(4).to_sparse(), leaf(4, 4)),
        lambda: nn.Linear(4, 4, device="meta")(torch.empty(2, 4, device="meta")),
    ],
    ids=["float64", "convolution in float64", "no product", "sparse", "another device"],
)
def test_of_others_nothing_is_known(made: Made) -> None:
    assert not any(map(layer_of, users_below(made().sum().grad_fn)[1]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: in_net(nn.Linear(12, 20).requires_grad_(False), 64, 12),
        lambda: in_net(nn.Conv1d(12, 20, 1).requires_grad_(False), 4, 12, 9),
    ],
    ids=["linear", "convolution"],
)
def test_a_frozen_layer_makes_no_gradient_of_its_weight(make: Callable[[], Made]) -> None:
    layer = layer_in(make())
    assert isinstance(layer, (MatrixProduct, Convolution))
    assert (layer.makes_gradient, layer.learns) == (True, False)
    for form in formats_of(layer):
        layer.made(form)()
