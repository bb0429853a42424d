"""Parameters whose gradients nothing uses, as real loops show them through the real hooks."""

import gc
from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from gpuwatch.probe.settings import unused
from gpuwatch.probe.settings.sampler import SettingsSampler
from gpuwatch.probe.settings.unused import ADDED, MOST_WALKS, NUMBERS, found_below, numbers_of
from gpuwatch.tui.settings import Settings
from tests.unit.probe.held_clock import Watched, watched


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


class Net(nn.Module):
    """A backbone of two layers, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.backbone(x))
        return out


def seen(
    run: Watched,
    train: Callable[[], None],
    seconds: int = 6,
    sampler: SettingsSampler | None = None,
) -> Settings:
    """What is known after so many seconds of a loop."""
    sampler = sampler or SettingsSampler(run.recorder)
    for _ in range(seconds):
        run.clock.work(1_000)
        sampler.ask()
        train()
        train()
    assert not run.failures
    return Settings(**sampler.reading)


def loop(net: nn.Module, *optimizers: torch.optim.Optimizer) -> Callable[[], None]:
    def train() -> None:
        for optimizer in optimizers:
            net(torch.randn(3, 4)).sum().backward()
            optimizer.step()

    return train


def test_a_backbone_that_no_optimizer_has_is_seen(run: Watched) -> None:
    net = Net()
    found = seen(run, loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1)))
    assert (found.unused_parameters, found.graph_parameters) == (4, 6)
    assert found.unused_nodes is not None
    assert found.unused_nodes > 0.5


@pytest.mark.parametrize("seconds", [4, 20])
def test_a_second_stage_is_judged_by_itself(run: Watched, seconds: int) -> None:
    """All of a net is trained, then its head alone: "nothing is unused" stood from the first."""
    net, sampler = Net(), SettingsSampler(run.recorder)
    everything = torch.optim.SGD(net.parameters(), lr=0.1)
    assert not seen(run, loop(net, everything), seconds, sampler).unused_parameters
    del everything
    gc.collect()
    train = loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1))
    found = seen(run, train, 16, sampler)
    assert (found.unused_parameters, found.graph_parameters) == (4, 6)


@pytest.mark.parametrize(("ranks", "known"), [(1, 4), (2, None)])
def test_a_group_of_one_rank_has_no_shards(
    run: Watched, monkeypatch: pytest.MonkeyPatch, ranks: int, known: int | None
) -> None:
    """As a script of several ranks makes it that is run as one."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: ranks)
    net = Net()
    found = seen(run, loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1)))
    assert found.unused_parameters == known


def test_nothing_is_said_before_each_optimizer_can_have_stepped(run: Watched) -> None:
    net = Net()
    train = loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1))
    assert seen(run, train, seconds=2).unused_parameters is None


def test_where_another_optimizer_has_them_they_are_used(run: Watched) -> None:
    net = Net()
    two = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (net.head, net.backbone)]
    assert seen(run, loop(net, *two), seconds=9).unused_parameters in (None, 0)


def subtracted(parameter: nn.Parameter) -> None:
    with torch.no_grad():
        parameter.sub_(0.1)


def subtracted_beside_autograd(parameter: nn.Parameter) -> None:
    """As in word_language_model: `.data` has a version of its own."""
    parameter.data.sub_(0.1)


def put_in(parameter: nn.Parameter) -> None:
    parameter.data = parameter.data - 0.1


BY_HAND = [subtracted, subtracted_beside_autograd, put_in]


def beside(net: Net, update: Callable[[nn.Parameter], None]) -> Callable[[], None]:
    """An optimizer has the head, and something else is done with each parameter of the backbone."""
    step = loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1))

    def train() -> None:
        step()
        for one in net.backbone.parameters():
            update(one)

    return train


@pytest.mark.parametrize("update", BY_HAND)
def test_what_is_updated_by_hand_is_used(
    run: Watched, update: Callable[[nn.Parameter], None]
) -> None:
    def by_hand(parameter: nn.Parameter) -> None:
        update(parameter)
        parameter.grad = None

    assert seen(run, beside(Net(), by_hand)).unused_parameters is None


@pytest.mark.parametrize("clears", [False, True])
def test_a_target_net_that_follows_by_its_numbers_uses_no_gradient(
    run: Watched, clears: bool
) -> None:
    """ERL (ShawK91) makes its targets with a graph: 1.5x without. Nobody clears their gradients."""

    def follow(parameter: nn.Parameter) -> None:
        parameter.data.copy_(0.99 * parameter.data + 0.01 * torch.randn_like(parameter))
        if clears and parameter.grad is not None:
            parameter.grad.zero_()

    step = beside(Net(), follow)
    found = seen(run, lambda: [step() for _ in range(ADDED)].clear())
    assert found.unused_parameters == (None if clears else 4)


@pytest.mark.parametrize("parts", [2, 16])
def test_micro_batches_before_an_update_by_hand_keep_no_gradient(run: Watched, parts: int) -> None:
    turns = count(1)

    def by_hand(parameter: nn.Parameter) -> None:
        if parameter.grad is not None and next(turns) % (4 * parts) < 4:
            parameter.data.add_(parameter.grad, alpha=-0.01)
            parameter.grad = None

    step = beside(Net(), by_hand)
    assert seen(run, lambda: [step() for _ in range(37)].clear()).unused_parameters is None


def test_a_graph_is_walked_through_a_few_times_at_the_most(
    run: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something else updates its leaves it was walked through every other second."""
    net, walks = Net(), []

    def walked(root: Any, updated: Collection[int]) -> Any:
        walks.append(root)
        return found_below(root, updated)

    monkeypatch.setattr(unused, "found_below", walked)
    step = loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1))

    def train() -> None:
        step()
        for one in net.backbone.parameters():
            subtracted(one)

    assert seen(run, train, seconds=30).unused_parameters is None
    assert len(walks) == MOST_WALKS


def test_numbers_are_not_read_below_a_mode_of_the_users() -> None:
    class Sees(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise AssertionError(func)

    parameter = nn.Parameter(torch.ones(100))
    assert numbers_of(parameter) == NUMBERS * (1.0,)
    with Sees():  # type: ignore[no-untyped-call]
        assert numbers_of(parameter) is None
    assert numbers_of(nn.Parameter(torch.ones(4, 6).t())) is None
    assert numbers_of(nn.Parameter(torch.tensor(3.0))) == (3.0,)
    assert numbers_of(nn.Parameter(torch.empty(0))) == ()


def test_a_frozen_backbone_has_no_leaves(run: Watched) -> None:
    net = Net()
    net.backbone.requires_grad_(False)
    found = seen(run, loop(net, torch.optim.SGD(net.head.parameters(), lr=0.1)))
    assert (found.unused_parameters, found.graph_parameters) == (0, 2)


def test_a_net_that_judges_another_leads_gradients_on() -> None:
    """Its weights' gradients alone are not used: no operation leads to those alone."""
    made, judge = Net(), nn.Linear(2, 1)
    root = judge(made(torch.randn(3, 4))).sum().grad_fn
    fields, suspects = found_below(root, {id(one) for one in made.parameters()})
    assert (fields["unused_parameters"], fields["graph_parameters"]) == (2, 8)
    assert len(suspects) == 2


def test_copies_that_an_optimizer_has_tell_nothing() -> None:
    """As fp32 copies of a net in fp16: none of the graph's leaves is the optimizer's."""
    net = Net()
    assert found_below(net(torch.randn(3, 4)).sum().grad_fn, {1}) == ({}, [])


class OwnSGD(torch.optim.SGD):
    """Whatever it does with a learning rate."""


def head_first(net: Net, lr: float | torch.Tensor, kind: Any) -> torch.optim.Optimizer:
    backbone = {"params": [*net.backbone.parameters()], "lr": lr}
    made: torch.optim.Optimizer = kind([backbone, {"params": [*net.head.parameters()]}], lr=0.1)
    return made


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_backbone_that_is_frozen_only_by_a_learning_rate_of_0_is_seen(
    run: Watched, kind: Any
) -> None:
    """A ViT in two stages, the head first: 2.2x without those gradients on two cores."""
    net, sampler = Net(), SettingsSampler(run.recorder)
    optimizer = head_first(net, 0.0, kind)
    assert not seen(run, loop(net, optimizer), 3, sampler).unused_parameters, "a warm-up?"
    found = seen(run, loop(net, optimizer), 6, sampler)
    assert (found.unused_parameters, found.graph_parameters) == (4, 6)
    assert found.resting_parameters == 4
    optimizer.param_groups[0]["lr"] = 0.1
    assert not seen(run, loop(net, optimizer), 2, sampler).unused_parameters, "the second stage"


@pytest.mark.parametrize(
    ("lr", "kind"),
    [
        (torch.tensor(0.0), torch.optim.Adam),
        (1e-9, torch.optim.SGD),
        (0.0, torch.optim.Rprop),
        (0.0, OwnSGD),
    ],
    ids=["a tensor is not read", "small", "the first step alone", "not torch's"],
)
def test_what_may_be_moved_is_used(run: Watched, lr: float | torch.Tensor, kind: Any) -> None:
    net = Net()
    assert not seen(run, loop(net, head_first(net, lr, kind)), 20).unused_parameters


@pytest.mark.parametrize(
    "rate",
    [lambda step: step % 2, lambda step: step // 3 % 2, lambda step: step / 100],
    ids=["every other step", "three steps each", "warm-up"],
)
def test_a_learning_rate_that_is_0_now_and_then_is_none(
    run: Watched, rate: Callable[[int], float]
) -> None:
    net, steps, sampler = Net(), count(), SettingsSampler(run.recorder)
    optimizer = head_first(net, 0.0, torch.optim.SGD)
    step = loop(net, optimizer)

    def train() -> None:
        optimizer.param_groups[0]["lr"] = float(rate(next(steps)))
        step()

    for _ in range(20):
        assert not seen(run, train, 1, sampler).unused_parameters


def test_where_nothing_learns_there_is_no_part_to_freeze(run: Watched) -> None:
    """As in an epoch of warm-up that begins from 0."""
    net = Net()
    train = loop(net, torch.optim.SGD(net.parameters(), lr=0.0))
    assert seen(run, train, 20).unused_parameters is None
