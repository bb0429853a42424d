"""Inverses that are only multiplied by a few vectors, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpuwatch.probe.one_step.costly_operators import inverse
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

ROWS = 64
POINTS, Y, MANY = torch.randn(ROWS, 2), torch.randn(ROWS), torch.randn(ROWS, ROWS)
RAW = torch.zeros(2, requires_grad=True)


def covariance() -> Any:
    scale, noise = RAW.exp()
    return scale * torch.exp(-torch.cdist(POINTS, POINTS).square()) + noise * torch.eye(ROWS)


def operations(run: Callable[[], Any]) -> int:
    found = inverse(Traced().step(lambda: run().sum().backward()))
    return 0 if found is None else found.operations


def likelihood() -> Any:
    matrix = covariance()
    return Y @ torch.inverse(matrix) @ Y + torch.logdet(matrix)


def mean() -> Any:
    return torch.inverse(covariance()) @ Y


def test_an_inverse_for_one_vector_is_a_solve() -> None:
    """Itself, and two products of its backward."""
    assert operations(mean) >= 3


def test_a_determinant_of_the_same_matrix_goes_with_it() -> None:
    assert operations(likelihood) > operations(mean)


def solved() -> Any:
    return torch.linalg.solve(covariance(), Y)


def for_many() -> Any:
    return torch.inverse(covariance()) @ MANY


def squared() -> Any:
    inverted = torch.inverse(covariance())
    return inverted @ inverted


def looked_at() -> Any:
    inverted = torch.inverse(covariance())
    return inverted @ Y + inverted.diagonal()


def determinant_alone() -> Any:
    return torch.logdet(covariance())


def small() -> Any:
    return torch.inverse(covariance()[:3, :3]) @ Y[:3]


@pytest.mark.parametrize("run", [solved, for_many, squared, looked_at, determinant_alone, small])
def test_other_inverses_are_needed(run: Callable[[], Any]) -> None:
    assert operations(run) == 0
