"""Products with rows of one 1 among zeros, and sorts of which few is read, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from gpuwatch.probe.one_step.costly_operators import few_sorted, one_hot
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

WORDS = 80
LAYER: Any = nn.Linear(WORDS, 4)
TABLE: Any = nn.Embedding(WORDS, 4)
X = torch.randint(0, WORDS, (2, 8))
SCORES = torch.randn(4, 64, requires_grad=True)
ROWS = torch.randn(16, WORDS)


def found_in(run: Callable[[], Any], rule: Callable[[Any], Any]) -> int:
    """Operations."""
    found = rule(Traced().step(lambda: run().sum().backward()))
    return 0 if found is None else found.operations


def of_a_layer() -> Any:
    return LAYER(functional.one_hot(X, WORDS).float())


def by_hand() -> Any:
    hot = torch.zeros(8, WORDS).scatter_(1, X[0][:, None], 1.0)
    return hot @ TABLE.weight


@pytest.mark.parametrize("run", [of_a_layer, by_hand])
def test_a_product_with_one_hot_rows_is_a_lookup(run: Callable[[], Any]) -> None:
    """The product and its backward, and what makes the rows."""
    assert found_in(run, one_hot) >= 4


def test_rows_that_are_used_otherwise_as_well_are_needed() -> None:
    def run() -> Any:
        hot = functional.one_hot(X, WORDS).float()
        return LAYER(hot) + hot[..., :4] * 2.0

    assert 0 < found_in(run, one_hot) < found_in(of_a_layer, one_hot)


def looked_up() -> Any:
    return TABLE(X)


def dense() -> Any:
    return LAYER(ROWS)


def all_but_one() -> Any:
    """Each word but the one that is asked for."""
    return torch.ones(8, WORDS).scatter_(1, X[0][:, None], 0.0) @ TABLE.weight


def of_few_classes() -> Any:
    return functional.one_hot(X % 4, 4).float() @ TABLE.weight[:4]


def several_in_a_row() -> Any:
    return torch.zeros(8, WORDS).scatter_(1, X[0][:, None] % torch.arange(1, 9), 1.0) @ TABLE.weight


@pytest.mark.parametrize("run", [looked_up, dense, all_but_one, of_few_classes, several_in_a_row])
def test_other_products_are_not(run: Callable[[], Any]) -> None:
    assert found_in(run, one_hot) == 0


def hardest() -> Any:
    return (SCORES * 2).sort(dim=1, descending=True)[0][:, :4]


def first_indices() -> Any:
    return SCORES.gather(1, SCORES.argsort(dim=1)[:, :2])


@pytest.mark.parametrize("run", [hardest, first_indices])
def test_a_sort_of_which_few_is_read(run: Callable[[], Any]) -> None:
    assert found_in(run, few_sorted) == 1


def all_sorted() -> Any:
    return SCORES.sort(dim=1)[0] * torch.arange(64)


def half_of_it() -> Any:
    return SCORES.sort(dim=1)[0][:, :32]


def chosen() -> Any:
    return SCORES.topk(4, 1)[0]


@pytest.mark.parametrize("run", [all_sorted, half_of_it, chosen])
def test_a_sort_that_is_read_is_needed(run: Callable[[], Any]) -> None:
    assert found_in(run, few_sorted) == 0
