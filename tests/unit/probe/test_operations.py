"""How many operations a backward goes through, by the graphs of real loops."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.operations import PAUSE, Operations, counted
from gpuwatch.probe.settings.sampler import AGAIN_NS, SettingsSampler
from gpuwatch.probe.settings.users import MOST_NODES, users_below
from tests.unit.probe.held_clock import Watched, watched


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def rows(net: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return torch.stack([net(row).sum() for row in batch]).mean()


def root_of(loss: torch.Tensor) -> torch.autograd.graph.Node:
    assert loss.grad_fn is not None
    return loss.grad_fn


def counted_below(root: Any) -> tuple[int, int, int]:
    return counted(*users_below(root))


def test_a_batch_row_by_row_has_as_many_operations_as_rows() -> None:
    net, batch = nn.Linear(4, 2), torch.randn(16, 4)
    once, *_ = counted_below(root_of(net(batch).sum()))
    each, uses, added = counted_below(root_of(rows(net, batch)))
    assert each >= 16 * once
    assert uses == 16
    assert added == 15 * 4 * (4 * 2 + 2)  # floats of a weight and a bias


def test_a_result_that_many_use_counts_as_a_parameter_does() -> None:
    shared = torch.randn(8, 3, requires_grad=True) * 2
    _, uses, _ = counted_below(root_of(torch.stack([shared[k].sum() for k in range(8)]).sum()))
    assert uses == 8


class Sized(torch.Tensor):
    """Whose sizes are asked of its own code."""

    asked: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "Sized":
        made: Sized = torch.Tensor._make_wrapper_subclass(
            cls, held.size(), requires_grad=True, dispatch_sizes_strides_policy="sizes"
        )
        return made

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(  # type: ignore[override, unused-ignore]
        cls, what: Any, types: Any, args: Any = (), named: Any = None
    ) -> Any:
        cls.asked.append(str(what))
        plain = [one.held if isinstance(one, Sized) else one for one in args]
        return what(*plain, **(named or {}))


def test_no_code_of_a_tensors_subclass_is_run() -> None:
    weight = Sized(torch.randn(3))
    root = root_of((weight * 2).sum() + (weight * 3).sum())
    Sized.asked.clear()
    assert counted_below(root)[1:] == (2, 0)
    assert not Sized.asked


def test_of_a_large_graph_a_part_is_walked() -> None:
    value = torch.ones(1, requires_grad=True)
    for _ in range(MOST_NODES + 50):
        value = value + 1
    nodes, *_ = counted_below(root_of(value))
    assert nodes == MOST_NODES


def test_a_walk_comes_again_when_a_thousand_times_its_length_is_over() -> None:
    clock = count(0, 1_000)  # each look at it is 1 us later: a walk takes one
    operations, root = (
        Operations(lambda: next(clock)),
        root_of(torch.ones(2, requires_grad=True).sum()),
    )
    assert operations.look(root) == {
        "graph_nodes": 1,
        "graph_uses": 1,
        "graph_added_bytes": 0,
        "repeated_layer": None,
        "same_products": None,
        "gathered_products": None,
        "unused_products": None,
        "recomputed_products": None,
        "penalty": None,
        "diagonal_solves": None,
        "attention_weights": None,
    }
    skipped = sum(operations.look(root) == {} for _ in range(PAUSE - 2))
    assert skipped >= PAUSE - 3
    assert any(operations.look(root) for _ in range(3))


def test_graphs_that_differ_count_with_their_mean() -> None:
    operations = Operations(lambda: 0)
    net = nn.Linear(4, 2)
    sizes = [counted_below(root_of(rows(net, torch.randn(size, 4))))[0] for size in (4, 12)]
    for size in (4, 12):
        seen = operations.look(root_of(rows(net, torch.randn(size, 4))))
    assert seen["graph_nodes"] == sum(sizes) / 2


def looped(run: Watched, train: Callable[[], None]) -> dict[str, object]:
    sampler = SettingsSampler(run.recorder)
    for _ in range(4):
        run.clock.work(AGAIN_NS / 1e6)
        sampler.ask()
        train()
        train()
    assert not run.failures
    return sampler.reading


def test_a_watched_loop_tells_how_many_operations_it_has(run: Watched) -> None:
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        rows(net, torch.randn(8, 4)).backward()
        optimizer.step()

    reading = looped(run, train)
    assert isinstance(reading["graph_nodes"], int)
    assert reading["graph_nodes"] >= 8
    assert reading["graph_uses"] == 8
