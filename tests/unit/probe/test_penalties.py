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
        lambda weight: 0.01 * (weight.view(-1) ** 2).sum() / 2,
        lambda weight: torch.sum(0.01 * torch.square(weight)),
    ],
)
def test_all_that_squares_a_parameter_as_a_whole(term: Callable[[Any], Any]) -> None:
    assert seen(term) == (1.0, 4)


def test_a_scaled_loss_of_several_batches_has_it_too() -> None:
    net = nn.Linear(WIDE, WIDE)
    decay = 0.1 * sum(one.pow(2).sum() for one in net.parameters())
    loss: Any = (net(torch.randn(4, WIDE)).sum() + decay) / 4 * torch.tensor(65_536.0)
    assert penalty_among(users_below(loss.grad_fn)[1]) == (1.0, 2)


def test_the_part_is_by_size() -> None:
    part, parameters = seen(lambda weight: weight.pow(2).sum(), every=False)
    assert parameters == 1
    assert part == pytest.approx(WIDE * WIDE / (2 * WIDE * WIDE + 2 * WIDE))


def rows(weight: torch.Tensor) -> torch.Tensor:
    return weight.expand(WIDE, WIDE)


@pytest.mark.parametrize(
    "term",
    [
        lambda weight: (weight * torch.randn_like(weight)).sum(),
        lambda weight: (weight - 1).pow(2).sum(),
        lambda weight: weight.sum(),
        lambda weight: nn.functional.normalize(rows(weight), dim=-1).sum(),
        lambda weight: (rows(weight).pow(2).sum(-1) - torch.ones(WIDE)).abs().sum(),
        lambda weight: weight.abs().sum(),
        lambda weight: weight.norm(),
        lambda weight: weight.pow(3).sum() + (weight**4).sum(),
        lambda weight: (torch.rand_like(weight) * weight.pow(2)).sum(),
        lambda weight: weight.pow(2).sum().log(),
        lambda weight: -weight.pow(2).sum(),
        lambda weight: (weight / weight.pow(2).sum().sqrt()).sum(),
        lambda weight: weight.pow(2).sum() * torch.ones((), requires_grad=True),
    ],
    ids=[
        *("a factor", "a distance", "a sum", "normalised", "norms of rows", "absolute values"),
        *("a norm", "other powers", "weighted", "a logarithm", "grows", "a direction", "learned"),
    ],
)
def test_what_weight_decay_does_not_do_is_no_penalty(term: Callable[[Any], Any]) -> None:
    assert seen(term) is None
