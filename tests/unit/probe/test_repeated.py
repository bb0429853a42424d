"""Layers that a forward calls again and again, by the graphs of real nets."""

from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.repeated import FEWEST_CALLS, Layer, repeated_layer
from gpuwatch.probe.settings.users import users_below

WORDS, ROWS, WIDE, VOCABULARY = 12, 4, 8, 50


def seen(loss: torch.Tensor) -> Layer | None:
    assert loss.grad_fn is not None
    return repeated_layer(users_below(loss.grad_fn)[1])


class Decoder(nn.Module):
    """Goes from word to word, and scores each in its turn."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.cell, self.scores = nn.LSTMCell(WIDE, WIDE), nn.Linear(WIDE, VOCABULARY, bias)

    def forward(self, words: torch.Tensor, feeds_back: bool = False) -> torch.Tensor:
        state: Any = None
        found: list[torch.Tensor] = []
        for word in words:
            if feeds_back and found:
                word = word + found[-1][:, :WIDE]
            state = self.cell(word, state)
            found.append(self.scores(state[0]))
        return torch.stack(found)


@pytest.mark.parametrize("bias", [True, False])
def test_a_vocabulary_that_no_turn_waits_for(bias: bool) -> None:
    words = torch.randn(WORDS, ROWS, WIDE)
    assert seen(Decoder(bias)(words).sum()) == (WORDS, ROWS, WIDE, VOCABULARY)


def test_what_a_turn_makes_of_the_one_before_is_no_such_layer() -> None:
    """Scores that go into the next word, and the cell itself."""
    words = torch.randn(WORDS, ROWS, WIDE)
    assert seen(Decoder()(words, feeds_back=True).sum()) is None


def test_a_few_calls_may_each_be_another_thing() -> None:
    words = torch.randn(FEWEST_CALLS - 1, ROWS, WIDE)
    assert seen(Decoder()(words).sum()) is None


def test_inputs_of_three_dimensions_count_all_their_rows() -> None:
    net = nn.Linear(WIDE, VOCABULARY)
    parts: Any = torch.randn(WORDS, 3, ROWS, WIDE)
    assert seen(torch.stack([net(one) for one in parts]).sum()) == (
        WORDS,
        3 * ROWS,
        WIDE,
        VOCABULARY,
    )


def test_a_weight_with_another_use_is_no_such_layer() -> None:
    net = nn.Linear(WIDE, VOCABULARY)
    parts = torch.randn(WORDS, ROWS, WIDE)
    assert seen(sum(net(one).sum() for one in parts) + net.weight.pow(2).sum()) is None


def test_what_many_layers_are_called_with_is_no_layer() -> None:
    """Heads, each with a weight of its own."""
    given = torch.randn(ROWS, WIDE, requires_grad=True)
    weights = [nn.Parameter(torch.randn(WIDE, 3)) for _ in range(WORDS)]
    heads = [nn.Linear(WIDE, 3) for _ in range(WORDS)]
    assert seen(torch.stack([given @ one for one in weights]).sum()) is None
    assert seen(torch.stack([one(given) for one in heads]).sum()) is None


def test_a_weight_may_be_multiplied_with_as_it_is() -> None:
    weight = nn.Parameter(torch.randn(WIDE, VOCABULARY))
    parts = torch.randn(WORDS, ROWS, WIDE)
    layer = seen(torch.stack([one @ weight for one in parts]).sum())
    assert layer == (WORDS, ROWS, WIDE, VOCABULARY)
