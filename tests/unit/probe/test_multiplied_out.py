"""Narrow weights that are multiplied out before a layer uses their product, by a traced step."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize

from gpuwatch.probe.one_step.multiplied_out import multiplied_out
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

WIDTH, RANK = 64, 4
BASE = torch.randn(WIDTH, WIDTH)
TRAINED = nn.Parameter(torch.randn(WIDTH, WIDTH))
DOWN = nn.Parameter(torch.randn(RANK, WIDTH))
UP = nn.Parameter(torch.randn(WIDTH, RANK))
SQUARE = nn.Parameter(torch.randn(WIDTH, WIDTH))
X = torch.randn(8, WIDTH)
MANY = torch.randn(64 * WIDTH, WIDTH)
TOKENS = torch.randint(0, WIDTH, (WIDTH,))
TABLE = nn.Parameter(torch.randn(WIDTH, WIDTH))
TASKS = torch.randn(WIDTH, WIDTH)


class Adapted(nn.Module):
    """As minLoRA has it."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + 2.0 * (UP @ DOWN)


def taken(run: Callable[[], torch.Tensor]) -> int | None:
    """Operations; each takes 1 us."""
    found = multiplied_out(Traced().step(lambda: run().sum().backward()))
    if found is None:
        return None
    assert 500 * found.operations < found.ns < 1_000 * found.operations, (
        "less what is taken instead"
    )
    return found.operations


def below_autocast() -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return functional.linear(X, BASE + (UP @ DOWN) * 0.5)


def adapted() -> nn.Module:
    layer = nn.Linear(WIDTH, WIDTH, bias=False)
    layer.weight.requires_grad_(False)
    parametrize.register_parametrization(layer, "weight", Adapted())
    return layer


ADAPTED = adapted()


def parametrized() -> torch.Tensor:
    out = ADAPTED(X)
    assert isinstance(out, torch.Tensor)
    return out


USED: list[Callable[[], torch.Tensor]] = [
    lambda: functional.linear(X, BASE + 0.5 * (UP @ DOWN)),
    lambda: X @ (BASE - (UP @ DOWN).t() / 4),
    below_autocast,
    parametrized,
]


@pytest.mark.parametrize("run", USED)
def test_narrow_weights_multiplied_out_take_their_backward_and_the_whole_gradient(
    run: Callable[[], torch.Tensor],
) -> None:
    operations = taken(run)
    assert operations is not None
    # the product forward, two of its backward, and the gradient of all of it
    assert operations >= 4


def steps_of_a_field(count: int) -> torch.Tensor:
    """Euler's method: each step reads the sum twice."""
    field = BASE + UP @ DOWN
    for _ in range(count):
        field = field + 0.01 * field
    return functional.linear(X, field)


def test_what_is_computed_with_for_long_costs_no_time_to_look_at() -> None:
    """24 steps took 10 s and 1.8 GB, on the training's thread."""
    assert taken(lambda: steps_of_a_field(200)) is None


def test_the_whole_gradient_stays_where_the_weight_beside_learns() -> None:
    frozen = taken(lambda: functional.linear(X[:1], BASE + UP @ DOWN))
    learns = taken(lambda: functional.linear(X[:1], TRAINED + UP @ DOWN))
    assert frozen is not None
    assert learns is not None
    assert learns == frozen - 1


OTHERS: list[Callable[[], torch.Tensor]] = [
    lambda: X @ DOWN.t() @ UP.t(),
    lambda: functional.linear(X, BASE + SQUARE @ TRAINED),
    lambda: functional.linear(X, BASE + (UP.repeat(1, 4) * 1.0) @ DOWN.repeat(4, 1)),
    lambda: functional.linear(MANY, TRAINED + UP @ DOWN),
    lambda: functional.linear(TABLE[TOKENS] + UP @ DOWN, SQUARE),
    lambda: (both := BASE + UP @ DOWN).t() @ both,
    lambda: functional.linear(X, BASE + (UP @ DOWN).softmax(-1)),
    lambda: ((UP @ DOWN) - TASKS).square(),
    lambda: functional.linear(X, BASE + TASKS * (UP @ DOWN)),
    lambda: functional.linear(X, (delta := BASE + UP @ DOWN)) / delta.norm(),
    lambda: functional.linear(X, BASE + (X.t() @ X[:, :RANK]) @ DOWN),
    lambda: functional.linear(X, UP @ DOWN),
]


@pytest.mark.parametrize(
    "run",
    OTHERS,
    ids=[
        "one after the other",
        "wide",
        "half as wide",
        "many rows",
        "added to what the batch asks for",
        "multiplied by itself",
        "not linear between",
        "no layer uses it",
        "by another matrix",
        "its norm is needed",
        "of the batch",
        "added to nothing",
    ],
)
def test_what_must_be_made_is_not_meant(run: Callable[[], torch.Tensor]) -> None:
    assert taken(run) is None
