"""A rank that is given its batches by another waits for them, and fetches nothing itself."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from torch.utils.data import DataLoader

from gpuwatch.probe.hooks import dispatched
from tests.unit.probe.held_clock import Model, Rows, SlowSGD, Watched, phases_ms, watched


class Dispatcher:
    """As Accelerate's, on a held clock: 4 ms until a batch comes, one batch ahead of the loop."""

    def __init__(self, run: Watched, rank: int, batches: int) -> None:
        self.state = SimpleNamespace(process_index=rank)
        self._stop_iteration = False
        self._left = batches
        self._run = run
        self._loader = iter(DataLoader(Rows(run.clock, rows=2 * batches), batch_size=2))

    def _fetch_batches(self, iterator: Any) -> Any:
        if self.state.process_index == 0:
            batch = next(iterator, None)
        else:
            self._run.clock.work(4)
            batch = object() if self._left else None
            self._left -= 1
        self._stop_iteration = batch is None
        return batch

    def __iter__(self) -> Iterator[Any]:
        following = self._fetch_batches(self._loader)
        while (batch := following) is not None:
            following = self._fetch_batches(self._loader)
            yield batch


@pytest.mark.parametrize("rank", [0, 1])
def test_the_wait_for_another_ranks_batches_is_data(
    monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    module: Any = ModuleType(dispatched.MODULE)
    module.DataLoaderDispatcher = Dispatcher
    monkeypatch.setitem(sys.modules, dispatched.MODULE, module)
    bare = vars(Dispatcher)["_fetch_batches"]
    with watched() as run:
        detach = dispatched.attach(run.recorder)
        model = Model(run.clock)
        optimizer = SlowSGD(model, run.clock)
        for _ in Dispatcher(run, rank, batches=5):
            model(model.weight.detach()).backward()
            optimizer.step()
        run.recorder.end()
        steps = run.steps()
        assert detach() == ()
    assert vars(Dispatcher)["_fetch_batches"] is bare
    middle = {"data": 4, "forward": 6, "backward": 9, "optimizer": 3}
    assert [phases_ms(step) for step in steps[1:4]] == [middle] * 3
    assert len(steps) == 5


@pytest.mark.parametrize("content", [{}, {"DataLoaderDispatcher": object}])
def test_an_accelerate_that_does_it_otherwise_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, content: dict[str, Any]
) -> None:
    module = ModuleType(dispatched.MODULE)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, dispatched.MODULE, module)
    with watched() as run:
        assert dispatched.attach(run.recorder)() == ()
