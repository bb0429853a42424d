"""Gradients that are cleared before their optimizer steps, as real loops show them through the real
hooks."""

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings import cleared
from gpuwatch.probe.settings.cleared import MOST_BACKWARDS
from gpuwatch.probe.settings.sampler import SettingsSampler
from gpuwatch.tui.settings import Settings
from tests.unit.probe.held_clock import Watched, watched

Train = Callable[[], None]


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def seen(run: Watched, train: Train, seconds: int = 8, each: int = 7) -> Settings:
    """What is known after so many seconds of a loop that goes on so often in each."""
    sampler = SettingsSampler(run.recorder)
    for _ in range(seconds):
        run.clock.work(1_000)
        sampler.ask()
        for _ in range(each):
            train()
    assert not run.failures
    return Settings(**sampler.reading)


def layers(first: int, last: int) -> nn.Module:
    return nn.Sequential(nn.Linear(first, 8), nn.Tanh(), nn.Linear(8, last))


class Pair:
    """A generator and a discriminator with their optimizers."""

    def __init__(self) -> None:
        self.made, self.judge = layers(4, 6), layers(6, 1)
        self.makes = torch.optim.Adam(self.made.parameters())
        self.judges = torch.optim.Adam(self.judge.parameters())


def adversarial(detach: bool, freeze: bool, updates: int = 1) -> Train:
    """As PyTorch's own DCGAN, or without its `detach()`, or with what is advised: one update."""
    pair = Pair()

    def judges() -> None:
        pair.judge.zero_grad()
        pair.judge(torch.randn(3, 6)).mean().backward()
        fake = pair.made(torch.randn(3, 4))
        pair.judge(fake.detach() if detach else fake).mean().backward()
        pair.judges.step()

    def makes() -> None:
        pair.made.zero_grad()
        pair.judge.requires_grad_(not freeze)
        pair.judge(pair.made(torch.randn(3, 4))).mean().backward()
        pair.makes.step()
        pair.judge.requires_grad_(True)

    each = cycle([judges] * updates + [makes])
    return lambda: next(each)()


def test_a_discriminator_that_only_judges_makes_gradients_for_nothing(run: Watched) -> None:
    found = seen(run, adversarial(detach=True, freeze=False))
    assert found.cleared_parameters == 4
    assert found.cleared_nodes == 0, "each of its products hands a gradient on"
    assert found.cleared_weights == 2 / 8, "two layers of three backwards' two, two and four"
    assert found.cleared_for_input is False


def test_a_generator_below_fakes_that_were_not_detached(run: Watched) -> None:
    found = seen(run, adversarial(detach=False, freeze=True))
    assert found.cleared_parameters == 4
    assert found.cleared_nodes == 2 / 10
    assert found.cleared_weights == 1 / 10, "the layer above makes its input's gradient for them"


def test_both_are_added_up(run: Watched) -> None:
    both = seen(run, adversarial(detach=False, freeze=False))
    assert (both.cleared_nodes, both.cleared_weights) == (2 / 10, 3 / 10)


@pytest.mark.parametrize("updates", [1, 5])
def test_where_they_are_detached_and_frozen_nothing_is_lost(run: Watched, updates: int) -> None:
    train = adversarial(detach=True, freeze=True, updates=updates)
    assert seen(run, train).cleared_parameters is None


def test_a_critic_with_five_updates_for_each_of_an_actor(run: Watched) -> None:
    found = seen(run, adversarial(detach=True, freeze=False, updates=5), seconds=40)
    assert found.cleared_parameters == 4
    assert found.cleared_weights == 2 / 24


def attacked(for_input: bool) -> Train:
    """A net learns from what raises its loss, found by the gradient of the input."""
    net = layers(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        changed = torch.zeros(3, 4, requires_grad=True)
        for _ in range(3):
            loss = net(torch.randn(3, 4) + changed).mean()
            if for_input:
                changed = changed + torch.autograd.grad(loss, changed)[0].sign()
                continue
            loss.backward()
            assert changed.grad is not None
            changed = (changed + changed.grad.sign()).detach().requires_grad_()
        optimizer.zero_grad()
        net(torch.randn(3, 4) + changed.detach()).mean().backward()
        optimizer.step()

    return train


def test_a_net_that_is_asked_for_its_inputs_gradient(run: Watched) -> None:
    found = seen(run, attacked(for_input=False), seconds=12)
    assert found.cleared_parameters == 4
    assert found.cleared_for_input is True
    assert found.cleared_weights == 6 / 8, "of four backwards three"


def test_where_the_inputs_gradient_alone_is_made_nothing_is_lost(run: Watched) -> None:
    assert seen(run, attacked(for_input=True), seconds=12).cleared_parameters is None


def accumulated(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Of three parts, one step."""
    for _ in range(3):
        net(torch.randn(3, 4)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def read_by_hand(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """As a penalty of what was learned before sums up squares of them."""
    net(torch.randn(3, 4)).mean().backward()
    _ = [one.grad.square() for one in net.parameters() if one.grad is not None]
    optimizer.zero_grad()
    net(torch.randn(3, 4)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def climbed(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """As a sharpness-aware step: up by the first gradient, then down by that of what is there."""
    net(torch.randn(3, 4, requires_grad=True)).mean().backward()
    with torch.no_grad():
        for one in net.parameters():
            assert one.grad is not None
            one.add_(one.grad)
    optimizer.zero_grad()
    net(torch.randn(3, 4, requires_grad=True)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def penalised(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """`autograd.grad` makes no gradient of a parameter."""
    x = torch.randn(3, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    slope.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


USES = [accumulated, read_by_hand, climbed, penalised]


@pytest.mark.parametrize("use", USES)
def test_what_is_used_or_may_be_is_not_lost(
    run: Watched, use: Callable[[nn.Module, torch.optim.Optimizer], None]
) -> None:
    net = layers(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    assert seen(run, lambda: use(net, optimizer), seconds=12).cleared_parameters is None


def test_a_closure_that_is_called_again_within_a_step_loses_nothing(run: Watched) -> None:
    net = layers(4, 2)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    x, y = torch.randn(16, 4, requires_grad=True), torch.randn(16, 2)

    def closure() -> float:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        return float(loss.item())

    def train() -> None:
        optimizer.step(closure)

    assert seen(run, train, seconds=20).cleared_parameters is None


def test_a_step_that_a_scaler_left_out_is_none_of_every_turn(run: Watched) -> None:
    """Both nets' losses share a graph; once in a while one optimizer leaves its step out."""
    pair, turns = Pair(), iter(range(10_000))

    def train() -> None:
        loss = pair.judge(pair.made(torch.randn(3, 4))).mean()
        loss.backward()
        pair.judges.step()
        if next(turns) not in (1, 4):
            pair.makes.step()
        pair.made.zero_grad()
        pair.judge.zero_grad()

    assert not seen(run, train, seconds=20).cleared_parameters


def test_a_few_backwards_are_walked_through_and_no_more(
    run: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []

    def counted(backward: Any, root: Any, owners: Any) -> None:
        walks.append(root)
        walk(backward, root, owners)

    walk = cleared.walk
    monkeypatch.setattr(cleared, "walk", counted)
    assert seen(run, adversarial(detach=True, freeze=False), seconds=40).cleared_parameters == 4
    assert len(walks) <= MOST_BACKWARDS
