"""What is computed only to be multiplied by 0, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.zeroed import zeroed
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

NET = nn.Linear(64, 64)
ADVERSARY = nn.Sequential(
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Linear(64, 64)
)
X = torch.randn(8, 64)


def names(run: Callable[[], object]) -> int | None:
    """Operations; each takes 1 us."""
    found = zeroed(Traced().step(run))
    return None if found is None else found.operations


held_there: list[torch.Tensor] = []


def trains(weight: float, **how: bool) -> Callable[[], None]:
    """As VQGAN weighs its adversary."""

    def run() -> None:
        out = NET(X)
        real = out.square().mean()
        fake = -ADVERSARY(out).mean()
        if how.get("adaptive"):
            (along,) = torch.autograd.grad(real, NET.weight, retain_graph=True)
            (across,) = torch.autograd.grad(fake, NET.weight, retain_graph=True)
            fake = along.norm() / (across.norm() + 1e-4) * weight * fake
        else:
            fake = weight * fake
        if how.get("logged"):
            fake.item()
        if how.get("held"):
            held_there[:] = [fake]
        (real + fake).backward()
        if how.get("clipped"):
            nn.utils.clip_grad_norm_(ADVERSARY.parameters(), 1.0)

    return run


def test_a_term_whose_weight_is_zero_is_needless_with_its_backward() -> None:
    count = names(trains(0.0))
    assert count is not None
    # two products forward, four of their backward, and what lies between
    assert count >= 12


def test_what_is_made_to_weigh_it_goes_as_well() -> None:
    plain, adaptive = names(trains(0.0)), names(trains(0.0, adaptive=True))
    assert plain is not None
    assert adaptive is not None
    assert adaptive > plain + 4


@pytest.mark.parametrize("how", ["logged", "held", "clipped"])
def test_a_zero_may_be_logged_and_its_gradients_clipped(how: str) -> None:
    assert names(trains(0.0, **{how: True})) == names(trains(0.0))


def test_what_is_printed_is_needed_and_its_backward_is_not() -> None:
    count = names(printed)
    assert count is not None
    assert count >= 4


def own_loss() -> None:
    """An adversary's own loss, of which all is zero."""
    (0.0 * ADVERSARY(X).square().mean()).backward()


def summed_behind() -> None:
    """The zeros are summed up, and turned around, before they weigh something."""
    weight = (torch.ones(4) * 0).sum().neg()
    (NET(X).mean() + weight * ADVERSARY(X).mean()).backward()


@pytest.mark.parametrize("run", [own_loss, summed_behind])
def test_a_loss_of_nothing_but_zeros_is_needless(run: Callable[[], object]) -> None:
    count = names(run)
    assert count is not None
    assert count >= 8


def shared() -> None:
    """The product is read beside."""
    out = NET(X).square().mean()
    (out + 0.0 * out).backward()


def printed() -> None:
    fake = ADVERSARY(X).mean()
    fake.item()
    (NET(X).mean() + 0.0 * fake).backward()


def written_into() -> None:
    """A mask that is made of zeros, and then holds some ones."""
    mask = X * 0
    mask[:, :48] = 1.0
    (NET(X) * mask).mean().backward()


class Distilled(torch.autograd.Function):
    """A loss whose value is nothing, and whose gradient is given."""

    @staticmethod
    def forward(context: Any, out: torch.Tensor) -> torch.Tensor:
        return out.sum() * 0.0

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * torch.ones(8, 64)


def given() -> None:
    loss: torch.Tensor = Distilled.apply(ADVERSARY(X))  # type: ignore[no-untyped-call]
    loss.backward()


def averages() -> None:
    """The same layers go over what counts: their averages are of both."""
    (ADVERSARY(X).mean() + 0.0 * ADVERSARY(X + 1.0).mean()).backward()


def test_averages_of_layers_that_others_go_through_are_needed() -> None:
    """What follows the last of these, and the backward, is not."""
    alone, count = names(trains(0.0)), names(averages)
    assert alone is not None
    assert count is not None
    assert count < alone


@pytest.mark.parametrize(
    "run",
    [trains(0.5), trains(0.5, adaptive=True), shared, written_into, given],
    ids=["weighed", "weighed by gradients", "read beside", "written into", "its gradient is given"],
)
def test_what_counts_or_is_read_is_needed(run: Callable[[], object]) -> None:
    few = names(run)
    assert few is None or few <= 3, "the mean alone"
