"""Large tensors that a step makes anew, by a traced step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gpuwatch.probe.one_step.summary import LARGE, NewMemory, new_memory
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

ROWS = 512
X = torch.randn(ROWS, 64, requires_grad=True)
SMALL: Any = nn.Linear(64, 4)
SIZE = ROWS * ROWS * 4
"""Bytes of one matrix of them."""


def all_pairs() -> Any:
    return (X @ X.t()).exp_().sum()


def narrow() -> Any:
    return SMALL(X).sum()


def found_in(*terms: Callable[[], Any]) -> tuple[str, NewMemory] | None:
    def run() -> None:
        loss = torch.zeros(())
        for term in terms:
            loss = loss + term()
        loss.backward()

    step = Traced().step(run)
    found = new_memory(step)
    return None if found is None else (step.places[found.place].function, found)


def test_the_function_that_makes_most_is_found_with_its_backward() -> None:
    found = found_in(all_pairs, narrow)
    assert found is not None
    function, memory = found
    assert function.endswith("all_pairs")
    # forward and backward, and nothing for what is written in place
    assert 2 * SIZE <= memory.bytes <= 4 * SIZE
    assert memory.of_bytes >= memory.bytes


def test_small_tensors_stay_in_the_heap() -> None:
    assert ROWS * 64 * 4 == LARGE  # X's gradient is just large enough
    found = found_in(narrow)
    assert found is not None
    assert found[1].bytes <= 2 * LARGE
