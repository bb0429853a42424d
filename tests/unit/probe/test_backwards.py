"""Several backwards of one step, by the graphs that they go through."""

from collections.abc import Callable, Iterator
from threading import Thread
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


def zeroed_between(net: Net, optimizer: Any) -> None:
    """As PCGrad does, in older PyTorch."""
    for loss in net(torch.randn(8, WIDE)):
        optimizer.zero_grad(set_to_none=False)
        loss.backward(retain_graph=True)


def clipped_between(net: Net, _: Any) -> None:
    first, second = net(torch.randn(8, WIDE))
    first.backward(retain_graph=True)
    nn.utils.clip_grad_norm_(net.parameters(), 0.01)
    second.backward()


def of_some_parameters(net: Net, _: Any) -> None:
    """An adversary: a head learns from one, the backbone from the other."""
    first = net(torch.randn(8, WIDE))[0]
    torch.autograd.backward(first, inputs=list(net.heads.parameters())[:2], retain_graph=True)
    torch.autograd.backward(-first, inputs=list(net.backbone.parameters()))


def in_threads(net: Net, _: Any) -> None:
    """Nodes have numbers by the thread that made them: those of other graphs have the same."""
    for _ in range(2):
        losses: list[torch.Tensor] = []
        thread = Thread(target=lambda kept=losses: kept.extend(net(torch.randn(8, WIDE))))
        thread.start()
        thread.join()
        torch.stack(losses).sum().backward()


NO_SUMS = (cleared_between, zeroed_between, clipped_between, of_some_parameters)


@pytest.mark.parametrize("backwards", [summed, accumulated, in_threads, *NO_SUMS])
def test_graphs_of_their_own_and_gradients_that_are_no_sum_are_not_named(
    run: Asked, backwards: Callable[[Net, Any], None]
) -> None:
    assert run.seen(steps(backwards), times=8).repeated_backward is None
