"""Layers on rows of which nothing is used, by the graphs of real nets."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gpuwatch.probe.settings.products import products_among
from gpuwatch.probe.settings.unused_rows import LEAST_WIDTH
from gpuwatch.probe.settings.users import users_below
from tests.unit.probe.held_clock import watched
from tests.unit.probe.test_settings import Asked

TEXTS, LONG, WIDE, VOCABULARY = 6, 10, 32, 50
ROWS = TEXTS * LONG
pytestmark = pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="the graph of this torch (2.4) tells no shapes",
)


def unused(loss: Any) -> Any:
    return products_among(users_below(loss.grad_fn)[1])["unused_products"]


def hidden() -> torch.Tensor:
    return torch.randn(TEXTS, LONG, WIDE, requires_grad=True)


def head(bias: bool = True) -> nn.Linear:
    return nn.Linear(WIDE, VOCABULARY, bias)


def targets(ignored: int, every: int) -> torch.Tensor:
    """One word of so many counts."""
    found = torch.full((ROWS,), ignored)
    found[::every] = 3
    return found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("ignored", [-100, 0])
def test_words_that_the_loss_ignores(bias: bool, ignored: int) -> None:
    scores = head(bias)(hidden()).view(-1, VOCABULARY)
    loss = F.cross_entropy(scores, targets(ignored, 5), ignore_index=ignored)
    assert unused(loss) == (0.8, ROWS, ROWS // 5, WIDE, VOCABULARY)


def test_a_net_before_the_loss_counts_as_far_as_rows_stay_rows() -> None:
    """Attention mixes them: what is below it is used."""
    net = nn.Sequential(nn.Linear(WIDE, WIDE), nn.GELU(), nn.LayerNorm(WIDE), head())
    mixed = torch.softmax(hidden() @ hidden().transpose(1, 2), -1) @ nn.Linear(WIDE, WIDE)(hidden())
    loss = F.cross_entropy(net(mixed).view(-1, VOCABULARY), targets(-100, 5))
    found = unused(loss)
    assert found is not None
    layer, last = WIDE * WIDE, WIDE * VOCABULARY
    attention = 2 * LONG * WIDE
    assert found[0] == pytest.approx(
        0.8 * (layer + last) / (2 * layer + last + attention), abs=0.01
    )


def test_all_positions_but_the_last_are_left_out_behind_the_layer() -> None:
    found = unused(head()(hidden())[:, -1].square().sum())
    assert found == (0.9, ROWS, TEXTS, WIDE, VOCABULARY)
    assert unused(head()(hidden())[:, :5].square().sum())[0] == 0.5
    assert unused(head()(hidden()[:, -1]).square().sum()) is None


def test_rows_that_are_picked_by_indices_may_be_chosen_by_their_own_values() -> None:
    """The hardest of a batch, the best of a bag."""
    scores = head()(hidden()).view(-1, VOCABULARY)
    hardest = scores.detach().square().sum(1).topk(5).indices
    assert unused(scores[hardest].square().sum()) is None


def test_rows_that_a_gate_makes_zeros_of() -> None:
    """Experts on all tokens, of which each takes a quarter."""
    tokens = torch.randn(ROWS, WIDE, requires_grad=True)
    chosen = torch.full((ROWS, 4), float("-inf")).scatter(1, torch.arange(ROWS)[:, None] % 4, 1.0)
    gates = (chosen + torch.zeros(4, requires_grad=True)).softmax(-1)
    out = torch.zeros(ROWS, VOCABULARY)
    for number in range(4):
        out = out + gates[:, number, None] * head()(tokens)
    assert unused(out.square().sum())[0] == 0.75


def test_what_is_used_elsewhere_as_well_is_used() -> None:
    scores = head()(hidden())
    loss = scores[:, -1].square().sum() + scores[:, :-1].square().sum()
    assert unused(loss) is None
    assert unused(scores[:, -1].sum() + scores.exp().sum()) is None


@pytest.mark.parametrize("width", [VOCABULARY, 1])
def test_a_factor_without_zeros_and_dropout_leave_all_rows(width: int) -> None:
    scores = nn.Linear(WIDE, width)(hidden())
    assert unused((scores * torch.rand_like(scores).add(0.1)).sum()) is None
    dropped = F.dropout(nn.Linear(WIDE, VOCABULARY)(hidden()), 0.5)
    assert unused(dropped.sum()) is None


def test_one_factor_for_all_rows_says_nothing_of_a_row() -> None:
    channels = torch.zeros(VOCABULARY)
    channels[0] = 1
    assert unused((head()(hidden()) * channels).sum()) is None


def test_a_loss_that_ignores_everything_says_nothing() -> None:
    scores = head()(hidden()).view(-1, VOCABULARY)
    loss = F.cross_entropy(scores, torch.full((ROWS,), -100), reduction="sum")
    assert unused(loss) is None


def test_a_gate_that_is_rounded_learns_of_all_rows() -> None:
    """Straight through: its own gradient needs what it multiplies with zero."""
    tokens, soft = hidden().view(ROWS, WIDE), torch.rand(ROWS, 1, requires_grad=True)
    hard = (soft > 0.5).float() - soft.detach() + soft
    assert unused((hard * head()(tokens)).sum()) is None


def test_a_softmax_over_the_rows_needs_all_of_them() -> None:
    scores = nn.Linear(WIDE, 4)(hidden())
    assert unused(F.log_softmax(scores, 1)[:, 3].sum()) is None
    assert unused(F.log_softmax(scores, -1)[:, 3].sum())[0] == pytest.approx(1 - 1 / LONG)


def test_narrow_rows_are_no_cheaper_to_pick() -> None:
    layer, rows = nn.Linear(LEAST_WIDTH - 1, 4), torch.randn(TEXTS, LONG, LEAST_WIDTH - 1)
    assert unused(layer(rows)[:, -1].sum()) is None


def test_samples_that_are_left_out_may_be_used_without_a_gradient() -> None:
    """Pseudo labels of the weakly augmented half of a batch, targets of the same forward."""
    scores = head()(hidden())
    labels = scores[:3].detach().softmax(-1)
    assert unused((scores[3:] - labels).square().sum()) is None


def test_a_mask_may_be_made_of_the_layers_own_results() -> None:
    """What is positive, the hardest of a batch, what is sure enough."""
    scores = nn.Linear(WIDE, 1)(hidden())
    assert unused((scores * (scores > 0)).sum()) is None
    error = (scores - 1).square()
    assert unused((error * (error > error.median())).sum()) is None


def test_a_norm_over_all_positions_needs_all_of_them() -> None:
    found = nn.LayerNorm([LONG, VOCABULARY])(head()(hidden()))
    assert unused(found[:, -1].square().sum()) is None


def test_rows_that_were_gathered_and_then_masked_are_used_elsewhere() -> None:
    """A third of a node's edges count, but another third of each."""
    rows = torch.randn(20, WIDE, requires_grad=True)
    edges, mask = torch.arange(20).repeat_interleave(9), torch.rand(180, 1) > 2 / 3
    assert unused((head()(rows)[edges] * mask).square().sum()) is None


def test_of_a_part_of_a_graph_nothing_is_known() -> None:
    loss = head()(hidden())[:, -1].sum()
    users = users_below(loss.grad_fn)[1]
    assert products_among(users, is_whole=False)["unused_products"] is None


@pytest.fixture
def run() -> Iterator[Asked]:
    with watched() as one:
        yield Asked(one)


def last_row(net: torch.nn.Module) -> list[torch.Tensor]:
    """A layer on ten rows of which a loss takes the last, and another loss the rest."""
    found = net(torch.randn(2, 10, WIDE))
    return [found[:, -1].square().sum(), found[:, :-1].square().sum()]


@pytest.mark.parametrize(("backwards", "of_rows"), [(1, 0.9), (2, None)])
def test_rows_that_another_backward_of_the_step_uses_are_used(
    run: Asked, backwards: int, of_rows: float | None
) -> None:
    net = torch.nn.Linear(WIDE, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        optimizer.zero_grad()
        for loss in last_row(net)[:backwards]:
            loss.backward(retain_graph=True)
        optimizer.step()

    found: Any = run.seen(train, times=4).unused_products
    assert (None if found is None else found[0]) == of_rows


def test_a_backward_from_several_losses_tells_no_unused_rows(run: Asked) -> None:
    net = torch.nn.Linear(WIDE, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(last_row(net))
        optimizer.step()

    assert run.seen(train, times=4).unused_products is None
