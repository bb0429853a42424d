"""Several backwards of one step, by the graphs that they go through."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tests.unit.probe.held_clock import watched
from tests.unit.probe.test_settings import Asked

WIDE = 16
pytestmark = pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="the graph of this torch (2.4) tells no shapes",
)


@pytest.fixture
def run() -> Iterator[Asked]:
    with watched() as one:
        yield Asked(one)


class Net(nn.Module):
    """A backbone of two layers with two heads, of one layer each."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE))
        self.heads = nn.ModuleList(nn.Linear(WIDE, WIDE) for _ in range(2))

    def forward(self, rows: torch.Tensor) -> list[torch.Tensor]:
        shared = self.backbone(rows)
        return [head(shared).square().sum() for head in self.heads]


def steps(backwards: Callable[[Net, Any], None]) -> Callable[[], None]:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        optimizer.zero_grad()
        backwards(net, optimizer)
        optimizer.step()

    return train


def one_by_one(net: Net, _: Any) -> None:
    first, second = net(torch.randn(8, WIDE))
    first.backward(retain_graph=True)
    second.backward()


def summed(net: Net, _: Any) -> None:
    torch.stack(net(torch.randn(8, WIDE))).sum().backward()


def accumulated(net: Net, optimizer: Any) -> None:
    for _ in range(3):
        summed(net, optimizer)


def cleared_between(net: Net, optimizer: Any) -> None:
    first, second = net(torch.randn(8, WIDE))
    first.backward(retain_graph=True)
    optimizer.zero_grad()
    second.backward()


def test_each_goes_through_the_backbone_again(run: Asked) -> None:
    """Two layers of six are one's and the other's."""
    found: Any = run.seen(steps(one_by_one), times=8).repeated_backward
    assert found == (pytest.approx(2 / 6), 2)


@pytest.mark.parametrize("backwards", [summed, accumulated, cleared_between])
def test_graphs_of_their_own_and_gradients_that_are_no_sum_are_not_named(
    run: Asked, backwards: Callable[[Net, Any], None]
) -> None:
    assert run.seen(steps(backwards), times=8).repeated_backward is None
