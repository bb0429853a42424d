"""Products in fp32 within a net in half precision, and Fourier transforms of lengths with a large
prime factor, by a traced step; of a device on "meta", where nothing is computed."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.needless import Needless
from gpuwatch.probe.one_step.slow_forms import castable_ns, full_products, slow_transforms
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

BF16 = torch.bfloat16
LAYER = nn.Linear(16, 16, device="meta", dtype=BF16)
FULL_LAYER = nn.Linear(16, 16, device="meta")
X = torch.empty(2, 4, 8, 16, device="meta", dtype=BF16, requires_grad=True)
TABLE = torch.empty(8, 16, device="meta")
SIGNAL = torch.randn(2, 131, requires_grad=True)
PICTURE = torch.randn(2, 12, 262, requires_grad=True)


def filtered(length: int) -> torch.Tensor:
    half: torch.Tensor = torch.fft.rfft(SIGNAL, n=length) * 0.5
    whole: torch.Tensor = torch.fft.irfft(half, n=length)
    return whole


@pytest.mark.parametrize(
    ("run", "length", "operations"),
    [
        (lambda: filtered(131), 131, 4),
        (lambda: filtered(262), 262, 4),
        (lambda: torch.fft.fft2(PICTURE).abs(), 262, 2),
    ],
    ids=["a prime", "twice a prime", "of one side of a picture"],
)
def test_a_large_prime_factor_is_slow_forward_and_backward(
    run: Callable[[], torch.Tensor], length: int, operations: int
) -> None:
    found = slow_transforms(Traced().step(lambda: run().sum().backward()))
    assert found is not None
    assert found.length == length
    assert found.operations >= operations
    assert found.ns == 1_000 * found.operations


@pytest.mark.parametrize("length", [128, 144, 127, 113 * 4, 8192])
def test_small_prime_factors_have_a_quick_way(length: int) -> None:
    assert slow_transforms(Traced().step(lambda: filtered(length).sum().backward())) is None


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


def test_a_result_that_only_its_backward_keeps_was_made_in_the_step() -> None:
    """Attention in one call keeps its result, which the program lets go of: its backward, two
    thirds of the time, was taken for one with a tensor that nobody made."""

    def attend_at_once() -> torch.Tensor:
        query, key, value = (LAYER(X).float() for _ in range(3))
        call = torch.ops.aten._scaled_dot_product_efficient_attention
        attended: torch.Tensor = call(query, key, value, None, True)[0]
        return attended.to(BF16)

    found = found_in(attend_at_once)
    assert found is not None
    assert found.operations == 2


@pytest.mark.parametrize(
    "run",
    [
        lambda: attend(cast=True),
        lambda: LAYER(X),
        lambda: FULL_LAYER(TABLE),
        lambda: FULL_LAYER(LAYER(X).float().relu()),
    ],
    ids=["cast", "all in half", "all in fp32", "a head in fp32"],
)
def test_a_net_in_one_precision_is_not_meant(run: Callable[[], torch.Tensor]) -> None:
    assert found_in(run) is None


def test_a_net_on_the_cpu_is_not_meant() -> None:
    layers = nn.Linear(4, 4), nn.Linear(4, 4).bfloat16()
    run = lambda: layers[0](torch.ones(2, 4)).sum() + layers[1](torch.ones(2, 4).bfloat16()).sum()  # noqa: E731
    assert found_in(run) is None


def spd() -> torch.Tensor:
    rows = torch.randn(6, 6, requires_grad=True)
    return rows @ rows.mT + torch.eye(6)


def cast(run: Callable[[], torch.Tensor]) -> int:
    """Operations that autocast computes in half precision; each takes 1 us."""
    return castable_ns(Traced().step(lambda: run().sum().backward())) // 1_000


def test_autocast_casts_products_with_their_backward() -> None:
    assert cast(spd) >= 3
    assert cast(lambda: nn.Linear(4, 4)(torch.ones(2, 4)).relu()) >= 2
    assert cast(lambda: nn.Conv1d(3, 4, 3)(torch.ones(2, 3, 9)).relu()) == 2
    assert cast(lambda: torch.ones(3, requires_grad=True).exp() * 2) == 0


@pytest.mark.parametrize("of", [torch.linalg.inv, torch.logdet, torch.linalg.cholesky])
def test_autocast_casts_no_inverse_and_no_product_of_its_backward(
    of: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    assert cast(lambda: of(spd())) == cast(spd)
