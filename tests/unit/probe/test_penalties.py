"""Parameters that a term of the loss squares, by the graphs of real nets."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.penalties import penalty_among
from gpuwatch.probe.settings.users import users_below

WIDE = 8


def seen(term: Callable[[Any], Any], every: bool = True) -> Any:
    net = nn.Sequential(nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE))
    weights = list(net.parameters())[: None if every else 1]
    loss = net(torch.randn(4, WIDE)).sum() + sum(term(one) for one in weights)
    return penalty_among(users_below(loss.grad_fn)[1])


@pytest.mark.parametrize(
    "term",
    [
        lambda weight: weight.pow(2).sum(),
        lambda weight: torch.square(weight).mean(),
        lambda weight: (weight * weight).sum(),
        lambda weight: weight.norm(),
        lambda weight: 0.01 * torch.linalg.vector_norm(weight.view(-1)),
    ],
)
def test_all_that_squares_a_parameter_as_a_whole(term: Callable[[Any], Any]) -> None:
    assert seen(term) == (1.0, 4)


def test_the_part_is_by_size() -> None:
    part, parameters = seen(lambda weight: weight.pow(2).sum(), every=False)
    assert parameters == 1
    assert part == pytest.approx(WIDE * WIDE / (2 * WIDE * WIDE + 2 * WIDE))


@pytest.mark.parametrize(
    "term",
    [
        lambda weight: (weight * torch.randn_like(weight)).sum(),
        lambda weight: (weight - 1).pow(2).sum(),
        lambda weight: weight.sum(),
        lambda weight: nn.functional.normalize(weight.expand(WIDE, WIDE), dim=-1).sum(),
        lambda weight: (weight.expand(WIDE, WIDE).pow(2).sum(-1) - torch.ones(WIDE)).sum(),
    ],
    ids=["a factor", "a distance from another net", "a sum", "normalised", "norms of rows"],
)
def test_what_weight_decay_does_not_do_is_no_penalty(term: Callable[[Any], Any]) -> None:
    assert seen(term) is None
