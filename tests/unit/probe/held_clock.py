"""A clock that stands still until the work of a loop moves it: phases become exact numbers."""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from msgspec import convert
from torch.utils.data import DataLoader, Dataset

from gpuwatch.probe.figures import StepCount
from gpuwatch.probe.hooks import backward, checkpoint, dataloader, optimizer
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import BATCH, LOADER
from gpuwatch.tui.messages import BatchSeen, Loader, Marks
from gpuwatch.tui.sources.marks.plain import Mark
from gpuwatch.tui.sources.marks.reader import MarkReader
from gpuwatch.tui.sources.marks.timeline import Timeline
from gpuwatch.tui.steps import Step

MS = 1_000_000


class HeldClock:
    """Nanoseconds that only `work` advances."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS

    def __call__(self) -> int:
        return self.now_ns

    def work(self, ms: float) -> None:
        """Let `ms` milliseconds pass."""
        self.now_ns += round(ms * MS)


class Watched:
    """A loop under the real hooks, on a held clock."""

    def __init__(self, clock: HeldClock, recorder: Recorder, failures: list[Exception]) -> None:
        self.clock = clock
        self.recorder = recorder
        self.failures = failures
        """What went wrong in the hooks, and in all that they call."""
        self.reader = MarkReader()
        self.timeline = Timeline()
        self._sent = 0
        self._by_marks = Timeline()
        """Fed mark by mark: what the other one takes in whole steps must be the same."""

    def marks(self) -> list[Mark]:
        """The marks since the last call, through the ring's bytes and the wire's line beside."""
        tail = self.recorder.tail(10**6)[2 * self._sent :]
        body = b"".join(array("q", tail[at::2]).tobytes() for at in (0, 1))
        self._sent += len(tail) // 2
        rare = [*self.recorder.rare]
        reported = Marks(
            1, 0, self._sent, 0, list(self.recorder.names),
            [(n, Loader(*seen[0]), seen[1], it) for n, kind, it, seen in rare if kind == LOADER],
            [(n, convert(seen, BatchSeen)) for n, kind, _, seen in rare if kind == BATCH],
            None, None, None, None, None, 0, [], [], [], [], None, 0,
            body,
        )  # fmt: skip
        self.reader._names = reported.names
        return self.reader._marks(reported)

    def counted(self) -> StepCount:
        """The steps so far by the probe's own rule, word by word."""
        self.steps()
        count = StepCount()
        for word in self.recorder.tail(10**6)[1::2]:
            count.add(array("q", [word]).tobytes())
        whole = StepCount()
        whole.add(array("q", self.recorder.tail(10**6)[1::2]).tobytes())
        assert whole.steps == count.steps
        return count

    def steps(self) -> list[Step]:
        """The steps completed since the last call."""
        some = self.marks()
        done = self.timeline.feed_all(some)
        assert done == [step for mark in some for step in self._by_marks.feed(mark)]
        assert self.timeline.open() == self._by_marks.open()
        assert self.timeline.loaders.all() == self._by_marks.loaders.all()
        for step in done:
            assert partition_ns(step) == step.end_ns - step.start_ns, step
        return done


def partition_ns(step: Step) -> int:
    """The sum of all phases, which must be the step's length."""
    return (
        step.data_ns
        + step.startup_ns
        + step.forward_ns
        + step.backward_ns
        + step.optimizer_ns
        + step.other_ns
        + step.evaluation_ns
        + step.checkpoint_ns
        + step.compile_ns
        + sum(step.phases.values())
    )


def phases_ms(step: Step) -> dict[str, float]:
    """The phases of a step that are not zero, ms."""
    no_phase = ("start_ns", "end_ns", "data_max_ns", "evaluation_data_ns")
    named = {
        name.removesuffix("_ns"): getattr(step, name) / MS
        for name in step.__struct_fields__
        if name.endswith("_ns") and name not in no_phase
    }
    named |= {name: ns / MS for name, ns in step.phases.items()}
    return {name: ms for name, ms in named.items() if ms}


@contextmanager
def watched() -> Iterator[Watched]:
    """The host-clock hooks on torch, and off again."""
    clock = HeldClock()
    failures: list[Exception] = []
    recorder = Recorder(arm=lambda _: True, trip=failures.append, now_ns=clock)
    detach = [hook.attach(recorder) for hook in (dataloader, backward, optimizer, checkpoint)]
    try:
        yield Watched(clock, recorder, failures)
    finally:
        left = [name for undo in detach for name in undo()]
    assert not failures, failures
    assert not left, left


class Rows(Dataset[torch.Tensor]):
    """Rows that take `ms` a batch to load (the first row of each pair pays)."""

    def __init__(self, clock: HeldClock, ms: float = 4, rows: int = 20) -> None:
        self._clock = clock
        self._ms = ms
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int) -> torch.Tensor:
        self._clock.work(self._ms / 2)
        return torch.ones(3)


class _Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, clock: HeldClock, ms: tuple[float, float]) -> Any:
        ctx.clock, ctx.ms = clock, ms
        clock.work(ms[0])
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        ctx.clock.work(ctx.ms[1])
        return grad, None, None


class Model(torch.nn.Module):
    """One weight; 6 ms forward, 9 ms backward."""

    def __init__(self, clock: HeldClock, forward_ms: float = 6, backward_ms: float = 9) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self._clock = clock
        self._ms = (forward_ms, backward_ms)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        work: Any = _Work.apply
        worked: torch.Tensor = work(self.weight, self._clock, self._ms)
        return (x * worked).sum()


class SlowSGD(torch.optim.SGD):
    """3 ms a step."""

    def __init__(self, model: torch.nn.Module, clock: HeldClock, ms: float = 3) -> None:
        super().__init__(model.parameters(), lr=0.1)
        self._clock = clock
        self._ms = ms

    def step(self, closure: Any = None) -> Any:
        """SGD's own step, nested as a subclass's is, with its time."""
        loss = super().step(closure)
        self._clock.work(self._ms)
        return loss


PLAIN: dict[str, float] = {"data": 4, "forward": 6, "backward": 9, "optimizer": 3}
"""A step of a plain loop: how long each phase takes, ms."""


def loader_of(run: Watched, rows: int = 20, ms: float = 4) -> DataLoader[torch.Tensor]:
    return DataLoader(Rows(run.clock, ms, rows), batch_size=2)


def steady(run: Watched) -> list[dict[str, float]]:
    """Phases of all steps but the first, which holds start-up."""
    return [phases_ms(step) for step in run.steps()][1:]
