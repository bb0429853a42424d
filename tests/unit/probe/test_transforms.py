"""Fourier transforms of lengths with a large prime factor, by a traced step."""

from collections.abc import Callable

import pytest
import torch

from gpuwatch.probe.one_step.transforms import slow_transforms
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

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
