"""Recurrent layers that go both ways, of which one time is used, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.one_time import BOTH_WAYS, one_time
from gpuwatch.probe.one_step.operation import NOWHERE, Operation, Step, Value, Work
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

TIMES, BATCH, WIDTH = 32, 2, 4
LAYER: Any = nn.LSTM(3, WIDTH, num_layers=2, bidirectional=True, batch_first=True)
TIMES_FIRST: Any = nn.LSTM(3, WIDTH, bidirectional=True)
ONE_WAY: Any = nn.LSTM(3, WIDTH, batch_first=True)
HEAD: Any = nn.Linear(2 * WIDTH, 2)
NARROW: Any = nn.Linear(WIDTH, 2)
X = torch.randn(BATCH, TIMES, 3)


def taken_ns(run: Callable[[], Any]) -> int:
    """Each operation takes 1 us."""
    found = one_time(Traced().step(lambda: run().sum().backward()))
    return 0 if found is None else found.ns


def last() -> Any:
    return HEAD(LAYER(X)[0][:, -1])


def first() -> Any:
    return HEAD(TIMES_FIRST(X.transpose(0, 1))[0][0])


@pytest.mark.parametrize("run", [last, first])
def test_the_direction_that_ends_there_is_needless(run: Callable[[], Any]) -> None:
    """The operation and its backward, one of 2 or of 4."""
    assert taken_ns(run) >= 2_000 * (1 - 1 / TIMES)


def all_times() -> Any:
    return HEAD(LAYER(X)[0]).mean(1)


def both_ends() -> Any:
    """As it should be done."""
    out = LAYER(X)[0]
    return NARROW(out[:, -1, :WIDTH]) + NARROW(out[:, 0, WIDTH:])


def last_states() -> Any:
    out, (state, _) = LAYER(X)
    return HEAD(out[:, -1]) + NARROW(state[-1])


def one_way() -> Any:
    return NARROW(ONE_WAY(X)[0][:, -1])


def middle() -> Any:
    return HEAD(LAYER(X)[0][:, TIMES // 2])


@pytest.mark.parametrize("run", [all_times, both_ends, last_states, one_way, middle])
def test_what_uses_all_times_needs_both(run: Callable[[], Any]) -> None:
    assert taken_ns(run) == 0


def of_cudnn(
    at: int, layers: int, packed: tuple[Any, ...] = (), times: int = TIMES, named: int = 0
) -> Step:
    """A step on a GPU: a layer with batches first, which times lie before in memory, and a product
    of the results at one time."""

    def value(storage: int, view: Any) -> Value:
        return Value(storage, (*view, "float32"), 4, on_host=False)

    width = 2 * WIDTH
    out = value(1, (0, (BATCH, times, width), (width, BATCH * width, 1)))
    read = value(1, (at * BATCH * width, (BATCH, width), (width, 1)))
    states = [value(storage, (0, (BATCH, WIDTH), (WIDTH, 1))) for storage in (2, 3)]
    tensor, yes = "tensor", ("bool", True)
    how = (("int", 2), ("int", WIDTH), ("int", 0), ("int", layers), yes, ("float", 0.0), yes, yes)
    given: Any = (BOTH_WAYS, tensor, (tensor,), ("int", 4), tensor, tensor, tensor, *how, packed)
    arguments = given[: len(given) - named]

    def operation(name: str, reads: Any, makes: Any, node: int, of_node: int) -> Operation:
        where: dict[str, Any] = {
            "place": 0,
            "writes": frozenset[int](),
            "is_random": False,
            "task": NOWHERE,
        }
        made: dict[str, Any] = {
            "arguments": arguments,
            "node": node,
            "of_node": of_node,
            "is_kept": False,
        }
        times: dict[str, Any] = {"ns": 8_192, "host_ns": 1_000}
        return Operation(name, Work.PRODUCT, reads=reads, makes=makes, **where, **made, **times)

    return Step(
        (
            operation(BOTH_WAYS, (), (out, *states), 7, NOWHERE),
            operation("addmm", (read,), (value(4, (0, (BATCH, 2), (2, 1))),), 8, NOWHERE),
            operation("_cudnn_rnn_backward", (), (value(5, (0, (1,), (1,))),), NOWHERE, 7),
        ),
        (),
        frozenset(),
        {},
    )


@pytest.mark.parametrize("layers", [1, 2])
def test_on_a_gpu_it_is_half_of_the_last_layer(layers: int) -> None:
    found = one_time(of_cudnn(TIMES - 1, layers))
    assert found is not None
    assert found.ns == round(16_384 / 2 / layers * (1 - 1 / TIMES))


@pytest.mark.parametrize(
    "how",
    [
        {"at": 5},
        {"at": TIMES - 1, "packed": (("int", 3),)},
        {"at": 0, "times": 0},
        {"at": 0, "times": 3},
        {"at": TIMES - 1, "named": 2},
    ],
)
def test_nor_in_the_middle_of_packed_or_empty_sequences_or_where_arguments_are_named(
    how: dict[str, Any],
) -> None:
    assert one_time(of_cudnn(layers=1, **how)) is None
