"""Stages of a training in one process: the optimizer that is reported is one that still steps."""

from collections.abc import Iterator
from itertools import count

import pytest
import torch

from gpuwatch.probe.settings.optimizers import SILENT
from tests.unit.probe.held_clock import watched
from tests.unit.probe.test_settings import Asked, net_of, plain
from tests.unit.probe.test_tables import ROWS, Net, embedding


@pytest.fixture
def run() -> Iterator[Asked]:
    with watched() as one:
        yield Asked(one)


def test_an_optimizer_of_an_earlier_stage_is_not_reported_while_its_name_lives(run: Asked) -> None:
    table, net = Net(embedding()), net_of()
    first = torch.optim.SGD(table.parameters(), lr=0.1, foreach=False)
    second = torch.optim.Adam(net.parameters(), foreach=True)

    def looks_up() -> None:
        first.zero_grad()
        table(torch.arange(12).reshape(3, 4)).backward()
        first.step()

    before = run.seen(looks_up)
    assert (before.optimizer, before.foreach, before.table_rows) == ("SGD", False, ROWS)
    assert run.seen(lambda: plain(net, second)).optimizer == "SGD", "it may step again"
    now = run.seen(lambda: plain(net, second), times=SILENT)
    assert (now.optimizer, now.foreach, now.table_rows) == ("Adam", True, None)
    assert now.host_parameters == 4
    again = run.seen(looks_up)
    assert (again.optimizer, again.foreach, again.table_rows) == ("SGD", False, ROWS)


@pytest.mark.parametrize("every", [5, 6])
def test_one_that_steps_now_and_then_is_reported_all_the_time(run: Asked, every: int) -> None:
    """As a generator behind five updates of its critic."""
    large, small = net_of(torch.nn.Linear(8, 8)), net_of()
    makes, judges = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (large, small))
    turns = count()

    def train() -> None:
        plain(small, judges)
        if next(turns) % every == 0:
            plain(large, makes)

    assert {run.seen(train, times=1).parameters for _ in range(SILENT)} == {6}
