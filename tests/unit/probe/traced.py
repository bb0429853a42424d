"""Steps that are traced by hand, one after the other, and a loop that is watched."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step import lasting, needless, tracer, traces
from gpuwatch.probe.one_step.operation import Step
from gpuwatch.probe.one_step.traces import STEP_OPERATIONS, StepTraces
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import Watched

BEARS_SUBCLASSES = pytest.mark.skipif(
    not tracer.bears_subclasses(), reason="this torch breaks tensors of own types below a mode"
)
SIZE = 64
X = torch.randn(SIZE, SIZE)


class Traced:
    """Steps one after the other; each operation takes 1 us."""

    def __init__(self) -> None:
        self.known = lasting.Known()
        self.before = frozenset[int]()

    def step(self, run: Callable[[], object]) -> Step:
        mode = tracer.tracer(self.known, count().__next__)
        with mode:
            run()
        assert not mode.why_not
        return tracer.step_of(mode, lambda _: 1_000)

    def constant(self, run: Callable[[], object]) -> needless.Needless | None:
        step = self.step(run)
        steady = needless.steady_of(step, self.known.ids)
        found = needless.constant(step, steady, self.before)
        self.before = frozenset(steady.keys)
        return found


class Loop:
    """A loop that is watched."""

    def __init__(self, run: Watched) -> None:
        self.net = nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.run = run
        self.traces = StepTraces(run.recorder)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.optimizer.zero_grad()
            self.net(torch.ones(4, 8)).sum().backward()
            self.optimizer.step()

    def found(self) -> Any:
        return self.traces.reading.get(STEP_OPERATIONS)


def is_of_forward(found: Any) -> bool:
    """Nothing but what the forward of a step has shown."""
    return found is not None and found[2:5] == (0, 0, ())


def is_on() -> bool:
    return bool(torch._C._len_torch_dispatch_stack())


def on_device(run: Watched, monkeypatch: pytest.MonkeyPatch) -> tuple[Loop, FakeDevice]:
    """Whose net takes 2 ms of it."""
    device = FakeDevice(run.clock)
    monkeypatch.setattr(traces, "find_events", lambda: device)
    loop = Loop(run)
    loop.net.register_forward_hook(lambda *_: device.launch(2))
    return loop, device
