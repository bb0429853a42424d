"""Products in a row whose other order takes a fraction of the arithmetic, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.product_order import costly_order
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

LONG, NARROW, WIDE = 96, 4, 64
QUERY, KEY, VALUE = (torch.randn(2, LONG, NARROW, requires_grad=True) for _ in range(3))
JOINED = (torch.rand(LONG, LONG) < 0.1).float()
SPARSE: Any = JOINED.to_sparse_csr()
FEATURES = torch.randn(LONG, WIDE, requires_grad=True)
LAYER = nn.Linear(WIDE, NARROW, bias=False)
WEIGHT = nn.Parameter(torch.randn(WIDE, NARROW))
SQUARE = nn.Parameter(torch.randn(WIDE, WIDE))
SCORED = nn.Linear(WIDE, WIDE, bias=False)
HIDDEN, ENCODED = torch.randn(32, 2, WIDE), torch.randn(32, 3, WIDE)
ADDED = torch.randn(2, LONG, LONG, requires_grad=True)
HALF_AS_NARROW = torch.randn(WIDE, WIDE // 2)
FOLDED = torch.randn(2 * WIDE, NARROW)
MASK = torch.ones(LONG, LONG).tril()


def taken_ns(run: Callable[[], torch.Tensor]) -> int | None:
    """Each operation takes 1 us."""
    found = costly_order(Traced().step(lambda: run().sum().backward()))
    return None if found is None else found.ns


def kept() -> torch.Tensor:
    kept_there.append(FEATURES @ FEATURES.t())
    return kept_there[-1] @ QUERY[0]


kept_there: list[torch.Tensor] = []


COSTLY: list[Callable[[], torch.Tensor]] = [
    lambda: (QUERY @ KEY.transpose(1, 2)) @ VALUE,
    lambda: (QUERY @ KEY.transpose(1, 2)) / NARROW**0.5 @ VALUE,
    lambda: VALUE.transpose(1, 2) @ (QUERY @ KEY.transpose(1, 2)),
    lambda: (JOINED @ FEATURES) @ WEIGHT,
    lambda: LAYER(JOINED @ FEATURES),
    lambda: torch.einsum("bid,bjd,bje->bie", QUERY, KEY, VALUE),
    lambda: (QUERY @ KEY.transpose(1, 2)).to(torch.float64) @ VALUE.double(),
]


@pytest.mark.parametrize("run", COSTLY)
def test_what_the_other_order_spares(run: Callable[[], torch.Tensor]) -> None:
    taken = taken_ns(run)
    assert taken is not None
    # two products, and what their backward has of them; three quarters and more of each goes
    assert taken >= 0.75 * 5_000


def test_of_a_sparse_matrix_the_sum_over_neighbours_is_as_narrow_as_its_features() -> None:
    taken = taken_ns(lambda: (SPARSE @ FEATURES) @ WEIGHT)
    assert taken is not None
    assert taken >= (1 - NARROW / WIDE) * 1_000
    assert taken_ns(lambda: SPARSE @ (FEATURES @ WEIGHT)) is None
    assert taken_ns(lambda: (SPARSE @ FEATURES) @ SQUARE) is None


OTHERS: list[Callable[[], torch.Tensor]] = [
    lambda: QUERY @ (KEY.transpose(1, 2) @ VALUE),
    lambda: (QUERY @ KEY.transpose(1, 2)).softmax(-1) @ VALUE,
    lambda: (QUERY @ KEY.transpose(1, 2) * MASK) @ VALUE,
    lambda: (JOINED @ FEATURES) @ SQUARE,
    lambda: JOINED @ (FEATURES @ WEIGHT),
    lambda: (both := JOINED @ FEATURES) @ WEIGHT + both.mean(),
    lambda: (JOINED @ FEATURES).relu() @ WEIGHT,
    kept,
    lambda: torch.bmm(SCORED(HIDDEN), ENCODED.transpose(1, 2)),
    lambda: torch.addmm(SQUARE, SQUARE[:, :2], SQUARE[:2]) @ WEIGHT,
    lambda: torch.baddbmm(ADDED, QUERY, KEY.transpose(1, 2)) @ VALUE,
    lambda: (JOINED @ FEATURES[:0].new_zeros(LONG, 0)) @ WEIGHT[:0],
    lambda: (JOINED @ FEATURES) @ HALF_AS_NARROW,
    lambda: (JOINED @ FEATURES).reshape(LONG // 2, -1) @ FOLDED,
]


@pytest.mark.parametrize(
    "run",
    OTHERS,
    ids=[
        "the cheap order",
        "a softmax between",
        "a mask between",
        "as wide",
        "narrow before",
        "read twice",
        "not linear",
        "kept",
        "a stack of products each its own",
        "added to a weight",
        "added to scores",
        "of nothing",
        "hardly narrower",
        "cut in another way",
    ],
)
def test_an_order_that_must_be_is_not_meant(run: Callable[[], torch.Tensor]) -> None:
    assert taken_ns(run) is None
