"""Layers on rows that were gathered, repeated or made larger before them, by a traced step."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.one_step.early_gathers import EarlyGathers, early_gathers
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

NODES, EDGES, WIDTH, OUT = 10, 100, 32, 16
LAYER, SECOND, PAIRS = nn.Linear(WIDTH, OUT), nn.Linear(OUT, OUT), nn.Linear(2 * WIDTH, OUT)
PIXELS, WIDE = nn.Conv2d(WIDTH, 4, 1), nn.Conv2d(WIDTH, 4, 3, padding=1)
TABLE = nn.Parameter(torch.randn(NODES, WIDTH))
EMBEDDING = nn.Embedding(NODES, WIDTH)
SOURCE, TARGET = torch.randint(0, NODES, (2, EDGES))
CONTEXT = torch.randn(4, WIDTH)
PICTURE = torch.randn(2, WIDTH, 4, 4, requires_grad=True)
POINTS = torch.randn(4, 25, WIDTH)


def larger(picture: torch.Tensor, mode: str = "bilinear") -> torch.Tensor:
    return functional.interpolate(picture, scale_factor=2, mode=mode)


def early(run: Callable[[], torch.Tensor]) -> EarlyGathers | None:
    """Each operation takes 1 us."""
    return early_gathers(Traced().step(lambda: run().sum().backward()))


ROWS: list[Callable[[], torch.Tensor]] = [
    lambda: LAYER(TABLE[SOURCE]),
    lambda: LAYER(TABLE.index_select(0, SOURCE)),
    lambda: LAYER(EMBEDDING(SOURCE)),
    lambda: LAYER(TABLE[SOURCE].relu()),
    lambda: LAYER(TABLE[:, None].expand(-1, 10, -1).reshape(EDGES, WIDTH)),
    lambda: LAYER(TABLE.repeat(10, 1)),
]


@pytest.mark.parametrize("run", ROWS)
def test_a_layer_on_gathered_rows_takes_so_much_for_those_that_are_there(
    run: Callable[[], torch.Tensor],
) -> None:
    found = early(run)
    assert found is not None
    assert found.layer == (EDGES, NODES, WIDTH, OUT)
    # addmm forward, and its backward's sum and two products
    assert found.ns >= 0.9 * 3_000


def test_layers_behind_the_first_are_on_the_same_rows() -> None:
    one, two = early(lambda: LAYER(TABLE[SOURCE])), early(lambda: SECOND(LAYER(TABLE[SOURCE])))
    assert one is not None
    assert two is not None
    assert two.ns > 1.6 * one.ns


def test_of_rows_side_by_side_each_part_counts_by_its_width() -> None:
    found = early(lambda: PAIRS(torch.cat([TABLE[SOURCE], TABLE[TARGET]], 1)))
    assert found is not None
    assert found.layer == (EDGES, NODES, 2 * WIDTH, OUT)
    half = early(lambda: PAIRS(torch.cat([CONTEXT[:, None].expand(-1, 25, -1), POINTS], 2)))
    assert half is not None
    assert half.layer == (EDGES, 52, 2 * WIDTH, OUT)


def test_behind_a_sum_with_rows_of_their_own_each_differs() -> None:
    residual, weight = torch.randn(EDGES, OUT), nn.Parameter(torch.randn(WIDTH, OUT))
    one = early(lambda: torch.addmm(residual, TABLE[SOURCE], weight))
    two = early(lambda: SECOND(torch.addmm(residual, TABLE[SOURCE], weight)))
    assert one is not None
    assert two is not None
    assert two.ns == one.ns


def test_behind_a_layer_on_rows_side_by_side_each_differs() -> None:
    one = early(lambda: PAIRS(torch.cat([TABLE[SOURCE], TABLE[TARGET]], 1)))
    two = early(lambda: SECOND(PAIRS(torch.cat([TABLE[SOURCE], TABLE[TARGET]], 1))))
    assert one is not None
    assert two is not None
    assert two.ns == one.ns


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_pixels_that_were_made_before_a_layer_of_single_ones(mode: str) -> None:
    found = early(lambda: PIXELS(larger(PICTURE, mode)))
    assert found is not None
    assert found.layer == (2 * 8 * 8, 2 * 4 * 4, WIDTH, 4)
    # of the convolution and its backward three quarters, of the upsampling's four channels stay
    assert found.ns == round(0.75 * 2_000 + (1 - 4 / WIDTH) * 2_000)


def test_what_others_read_must_be_made_larger() -> None:
    def run() -> torch.Tensor:
        large = larger(PICTURE)
        return torch.stack([PIXELS(large).sum(), (large * 2).sum()])

    found = early(run)
    assert found is not None
    # the convolution, its backward, and the sum of both gradients; four of 32 channels are made
    # larger beside the others
    assert found.ns == 0.75 * 3_000 - 4 / WIDTH * 2_000


def test_heads_on_one_picture_are_each_made_larger_then() -> None:
    """Three of 16 channels on an upsampling of 32: 0.1 of 25 ms went, and 13 were claimed."""
    heads = [nn.Conv2d(WIDTH, 16, 1) for _ in range(3)]

    def run() -> torch.Tensor:
        large = larger(PICTURE)
        return torch.stack([head(large).sum() for head in heads])

    one, three = early(lambda: heads[0](larger(PICTURE))), early(run)
    assert one is not None
    assert three is not None
    assert three.ns < 3 * one.ns


def test_what_a_checkpoint_computes_again_is_no_layers_time() -> None:
    body = nn.Sequential(nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU())

    def block(picture: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = PIXELS(larger(body(picture)))
        return scores

    bare = early(lambda: block(PICTURE))
    again = early(lambda: checkpoint(block, PICTURE, use_reentrant=False))
    assert bare is not None
    assert again is not None
    assert again.ns == bare.ns


NONE: list[Callable[[], torch.Tensor]] = [
    lambda: LAYER(POINTS),
    lambda: LAYER(TABLE)[SOURCE],
    lambda: LAYER(torch.randn(1_000, WIDTH)[SOURCE]),
    lambda: LAYER(TABLE[SOURCE].cumsum(0)),
    lambda: LAYER(functional.dropout(TABLE[SOURCE])),
    lambda: LAYER(TABLE[SOURCE].mul_(torch.rand(EDGES, 1))),
    lambda: WIDE(larger(PICTURE)),
    lambda: PIXELS(larger(PICTURE).relu()),
    lambda: nn.Linear(WIDTH, 10 * WIDTH)(TABLE[SOURCE]),
    lambda: TABLE[SOURCE].t() @ torch.randn(EDGES, OUT),
    lambda: PAIRS(TABLE[SOURCE].view(-1, 2 * WIDTH)),
    lambda: LAYER(torch.cat([TABLE[SOURCE], TABLE[TARGET]])),
    lambda: PIXELS(PICTURE),
    lambda: functional.linear(TABLE[SOURCE][:, :0], torch.randn(OUT, 0)),
    lambda: nn.Linear(64, OUT)(EMBEDDING(torch.randint(0, NODES, (4, 64))).transpose(1, 2)),
    lambda: LAYER(EMBEDDING(torch.randint(0, NODES, (8, 16)))[:, 0]),
    lambda: LAYER(torch.cat([CONTEXT[:, None].expand(-1, 25, -1), POINTS], 2).chunk(2, -1)[1]),
    lambda: nn.GRU(WIDTH, OUT)(EMBEDDING(SOURCE))[0],
    lambda: nn.MultiheadAttention(WIDTH, 2)(*[EMBEDDING(SOURCE)] * 3)[0],
    lambda: LAYER(torch.randn(64, 48)[:, torch.randint(0, 48, (8, WIDTH))]),
    lambda: LAYER(torch.randn(NODES, WIDTH)[SOURCE, :][:NODES]),
]


@pytest.mark.parametrize("run", NONE)
def test_what_could_not_come_first_is_none(run: Callable[[], torch.Tensor]) -> None:
    assert early(run) is None
