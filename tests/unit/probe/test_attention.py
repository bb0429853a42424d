"""Attention whose weights are made in full, by the graphs of real layers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gpuwatch.probe.settings.attention import attention_among
from gpuwatch.probe.settings.users import users_below

BATCH, LONG, WIDE, HEADS = 2, 12, 8, 2
EACH = BATCH * HEADS * LONG * LONG
PRODUCTS = BATCH * LONG * (3 * WIDE * WIDE + WIDE * WIDE) + 2 * EACH * WIDE // HEADS


def layer(**more: Any) -> Any:
    return nn.MultiheadAttention(WIDE, HEADS, batch_first=True, **more)


def seen(loss: Callable[[Any], Any]) -> Any:
    texts = torch.randn(BATCH, LONG, WIDE, requires_grad=True)
    return attention_among(users_below(loss(texts).grad_fn)[1])


def thrown_away(texts: Any) -> Any:
    return layer()(texts, texts, texts)[0].sum()


def test_weights_that_are_thrown_away() -> None:
    each, *others = seen(thrown_away)
    assert each == pytest.approx(4 * 2 * EACH / PRODUCTS)
    assert others == [1, LONG, WIDE // HEADS, False, 0]


def test_every_layer_counts() -> None:
    net = nn.ModuleList([layer() for _ in range(3)])

    def through(texts: Any) -> Any:
        for one in net:
            texts = one(texts, texts, texts)[0]
        return texts.sum()

    each, layers, *_ = seen(through)
    assert (each, layers) == (pytest.approx(seen(thrown_away)[0]), 3)


def test_half_types_take_half_the_bytes() -> None:
    def in_half(texts: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return thrown_away(texts)

    assert seen(in_half)[0] == pytest.approx(seen(thrown_away)[0] / 2)


def test_a_mask_changes_nothing_and_dropout_is_named() -> None:
    causal = torch.full((LONG, LONG), float("-inf")).triu(1)
    assert seen(lambda one: layer()(one, one, one, attn_mask=causal)[0].sum())[1:] == (
        *(1, LONG, WIDE // HEADS, False, 0),
    )
    *_, is_dropped, _ = seen(lambda one: layer(dropout=0.1)(one, one, one)[0].sum())
    assert is_dropped


def test_beside_the_one_kernel() -> None:
    def both(texts: Any) -> Any:
        texts = layer()(texts, texts, texts, need_weights=False)[0]
        return layer()(texts, texts, texts)[0].sum()

    assert seen(both)[-1] == 1


def used(texts: Any) -> Any:
    out, weights = layer()(texts, texts, texts)
    return out.sum() + weights.pow(2).sum()


@pytest.mark.parametrize(
    "loss",
    [
        lambda one: layer()(one, one, one, need_weights=False)[0].sum(),
        lambda one: layer(dropout=0.1)(one, one, one, need_weights=False)[0].sum(),
        lambda one: nn.TransformerEncoderLayer(WIDE, HEADS, WIDE, batch_first=True)(one).sum(),
        used,
        lambda one: F.cross_entropy(one @ one.mT, torch.zeros(BATCH, LONG, dtype=torch.int64)),
        lambda one: (torch.softmax(nn.Linear(WIDE, 3)(one), -1) @ torch.rand(3, 2)).sum(),
    ],
    ids=["fused", "fused with dropout", "encoder layer", "used", "contrastive", "router"],
)
def test_no_weights_that_could_be_left_out(loss: Callable[[Any], Any]) -> None:
    assert seen(loss) is None
