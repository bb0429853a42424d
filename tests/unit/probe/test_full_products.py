"""Products in fp32 beside others in half precision, by a traced step on a device: on "meta", where
nothing is computed."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.needless import Needless, full_products
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

BF16 = torch.bfloat16
LAYER = nn.Linear(16, 16, device="meta", dtype=BF16)
FULL_LAYER = nn.Linear(16, 16, device="meta")
X = torch.empty(2, 4, 8, 16, device="meta", dtype=BF16, requires_grad=True)
TABLE = torch.empty(8, 16, device="meta")


def found_in(run: Callable[[], torch.Tensor]) -> Needless | None:
    """Each operation takes 1 us."""
    return full_products(Traced().step(lambda: run().float().sum().backward()))


def attend(cast: bool) -> torch.Tensor:
    """Queries and keys are multiplied by a table in fp32."""
    query, key, value = (LAYER(X) for _ in range(3))
    query, key = query * TABLE, key * TABLE
    if cast:
        query, key = query.to(BF16), key.to(BF16)
    weights: torch.Tensor = (query @ key.transpose(-1, -2)).softmax(-1)
    out: torch.Tensor = weights @ value.to(query.dtype)
    return out


def test_attention_in_fp32_within_a_net_in_half_precision() -> None:
    found = found_in(lambda: attend(cast=False))
    assert found is not None
    assert found.operations >= 3


@pytest.mark.parametrize(
    "run",
    [lambda: attend(cast=True), lambda: LAYER(X), lambda: FULL_LAYER(TABLE)],
    ids=["cast", "all in half", "all in fp32"],
)
def test_a_net_in_one_precision_is_not_meant(run: Callable[[], torch.Tensor]) -> None:
    assert found_in(run) is None


def test_a_net_on_the_cpu_is_not_meant() -> None:
    layers = nn.Linear(4, 4), nn.Linear(4, 4).bfloat16()
    run = lambda: layers[0](torch.ones(2, 4)).sum() + layers[1](torch.ones(2, 4).bfloat16()).sum()  # noqa: E731
    assert found_in(run) is None
