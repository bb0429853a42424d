"""An embedding's table that is only looked up, as the graph of a backward shows it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.sampler import AGAIN_NS, SettingsSampler
from gpuwatch.probe.settings.tables import tables_of, tall
from gpuwatch.tui.settings import Settings
from tests.unit.probe.held_clock import Watched, watched
from tests.unit.probe.test_autocast import named

ROWS, WIDTH = 500, 4
TYPED = hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata")
HELD = 4 * ROWS * WIDTH
LOOKED_UP = 12 if TYPED else None
"""A torch that keeps no shapes in its graph (2.4) tells no lookups."""


class Net(nn.Module):
    """Rows of a table, and a layer over them."""

    def __init__(self, table: nn.Module, shared: bool = False) -> None:
        super().__init__()
        self.table = table
        self.top = nn.Linear(WIDTH, ROWS if shared else 2, bias=False)
        if shared:
            self.top.weight = table.weight  # type: ignore[assignment]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.top(self.table(rows).reshape(-1, WIDTH))
        return out.sum()


def embedding(**how: Any) -> nn.Embedding:
    return nn.Embedding(ROWS, WIDTH, **how)


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def seen(
    run: Watched,
    net: nn.Module,
    times: int = 1,
    kind: str = "SGD",
    how: Mapping[str, float] = MappingProxyType({}),
) -> Settings:
    """What is known after some steps of a loop under the hooks."""
    sampler = SettingsSampler(run.recorder)
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.1, **how)
    rows = torch.arange(12).reshape(3, 4)
    for _ in range(3):
        run.clock.work(AGAIN_NS / 1e6)
        sampler.ask()
        for _ in range(2):
            optimizer.zero_grad()
            sum((net(rows) for _ in range(times)), torch.zeros(())).backward()
            optimizer.step()
    assert not run.failures
    return Settings(**sampler.reading)


def test_the_rows_of_a_table_and_the_lookups_of_a_step_are_seen(run: Watched) -> None:
    found = seen(run, Net(embedding()))
    assert (found.table_rows, found.table_bytes) == (ROWS, 4 * ROWS * WIDTH)
    assert found.table_lookups == LOOKED_UP


@pytest.mark.parametrize(
    ("kind", "how", "takes"),
    [
        ("SGD", {"momentum": 0.9}, False),
        ("SGD", {"weight_decay": 1e-4}, False),
        ("Adagrad", {"weight_decay": 1e-4}, False),
        ("SGD", {"fused": True}, False),
        ("Adagrad", {}, True),
        ("AdamW", {"weight_decay": 1e-2}, True),
    ],
)
def test_a_table_is_none_where_its_gradients_cannot_be_sparse(
    run: Watched, kind: str, how: dict[str, float], takes: bool
) -> None:
    """`sparse=True` was the first advice: 3 ms a step became 26, or a RuntimeError, as by the fused
    form."""
    found = seen(run, Net(embedding()), kind=kind, how=how)
    assert (found.table_rows == ROWS) is takes


def test_every_lookup_of_a_backward_counts(run: Watched) -> None:
    found = seen(run, Net(embedding()), times=2)
    assert found.table_lookups == (24 if TYPED else None)


def test_bags_do_not_tell_their_lookups(run: Watched) -> None:
    found = seen(run, Net(nn.EmbeddingBag(ROWS, WIDTH)))
    assert (found.table_rows, found.table_lookups) == (ROWS, None)


def test_a_table_that_the_last_layer_shares_is_none(run: Watched) -> None:
    assert seen(run, Net(embedding(), shared=True)).table_rows is None


def test_a_table_whose_gradients_are_sparse_by_now_is_none(run: Watched) -> None:
    assert seen(run, Net(embedding(sparse=True))).table_rows is None


def test_a_wide_layer_is_no_table() -> None:
    layer = nn.Linear(4, ROWS)
    held = layer.weight.numel() * 4
    assert tall([layer.weight], held) == [layer.weight]
    assert tables_of(layer(torch.ones(2, 4)).sum().grad_fn, [layer.weight], held) is None


def test_a_table_that_holds_little_is_not_looked_for() -> None:
    weights = [nn.Embedding(20, 64).weight, nn.Linear(64, 64).weight]
    assert tall(weights, sum(4 * one.numel() for one in weights)) == []


def test_no_saved_tensor_is_unpacked() -> None:
    """The program's own hooks for saved tensors would run in the look."""
    net = Net(embedding())
    unpacked: list[torch.Tensor] = []

    def unpack(kept: torch.Tensor) -> torch.Tensor:
        unpacked.append(kept)
        return kept

    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept, unpack):
        graph = net(torch.arange(12)).grad_fn
    assert tables_of(graph, [net.table.weight], HELD) is not None
    assert not unpacked


def test_a_node_that_has_a_name_of_the_programs_own_is_passed() -> None:
    net = Net(embedding())
    graph = named(net(torch.arange(12))).grad_fn
    assert tables_of(graph, [net.table.weight], HELD) is not None


class Pairs(nn.Module):
    """Users and items, as factors of a matrix; `shared`: all items are scored as well."""

    def __init__(self, shared: bool = False) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(ROWS, WIDTH), nn.Embedding(ROWS // 2, WIDTH)
        self.shared = shared

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        both: torch.Tensor = (self.users(rows) * self.items(rows)).sum()
        return both + (self.items.weight.sum() if self.shared else 0.0)


def test_two_tables_are_summed(run: Watched) -> None:
    """Of users and items Adam updated 80,000 rows for 1,024 lookups: 8x, where 3x was said."""
    found = seen(run, Pairs())
    assert (found.table_rows, found.table_bytes) == (3 * ROWS // 2, 4 * 3 * ROWS // 2 * WIDTH)
    assert found.table_lookups == (24 if TYPED else None)


def test_of_two_tables_one_that_is_used_otherwise_is_left_out(run: Watched) -> None:
    assert seen(run, Pairs(shared=True)).table_rows == ROWS
