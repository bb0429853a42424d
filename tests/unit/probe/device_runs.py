"""Loops under the hooks before a device whose truth is known."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from gpuwatch.probe.device.rate_limit import RateLimiter
from gpuwatch.probe.device.stamper import Report
from gpuwatch.tui.messages import Aligned, Allocated, Passed
from gpuwatch.tui.steps import GpuStep
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import MS, Rows, Watched, watched


def crossed(reported: Report) -> Passed | Aligned | Allocated:
    """As the monitor has it from the wire."""
    kind, row = reported
    if kind == "allocated":
        return Allocated(*row)
    return Passed(*row) if kind == "passed" else Aligned(*row)


@dataclass
class Run:
    """A loop under the hooks, with a device behind it."""

    host: Watched
    device: FakeDevice
    rate_limiter: RateLimiter
    turn_ns: int = 0
    turning: bool = True
    """The publisher takes its turns, ten times a second, and may spend what it likes."""

    def reported(self) -> list[GpuStep]:
        """What the publisher would send now."""
        assert self.rate_limiter.stamper is not None
        some, ledger = self.host.marks(), self.host.timeline.ledger
        ledger.switched.extend(self.host.reader.numbered(self.rate_limiter.stamper.switched))
        self.rate_limiter.stamper.switched.clear()
        self.host.timeline.feed_all(some)
        for reported in map(crossed, self.rate_limiter.reports()):
            if isinstance(reported, Passed):
                reported = self.host.reader.passed(reported)
            ledger.take(reported, self.host.timeline.steps)
        return ledger.steps()

    def work(self, host_ms: float, device_ms: float) -> None:
        """The host issues a kernel in that time."""
        self.device.launch(device_ms)
        self.host.clock.work(host_ms)
        if self.turning and self.host.clock.now_ns >= self.turn_ns:
            self.turn_ns = self.host.clock.now_ns + 100 * MS
            self.rate_limiter.turn(self.host.clock.now_ns, 0, 0)
            assert self.rate_limiter.stamper is not None
            self.rate_limiter.stamper.grant(10_000)


@contextmanager
def on_a_device(**device: object) -> Iterator[Run]:
    with watched() as host:
        fake = FakeDevice(host.clock, **device)  # type: ignore[arg-type]
        rate_limiter = RateLimiter(host.recorder, lambda: fake)
        host.recorder.watched = True
        rate_limiter.turn(host.clock.now_ns, 0, 0)
        yield Run(host, fake, rate_limiter)
        assert not host.failures, host.failures


def train(
    run: Run,
    steps: int,
    wait_ms: float,
    forward: tuple[float, float],
    backward: tuple[float, float],
    update: tuple[float, float] = (1, 2),
    after: Callable[[], None] = lambda: None,
) -> None:
    """A plain loop; each pair is (host ms, device ms)."""
    weight = torch.nn.Parameter(torch.ones(3))

    class Kernels(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            run.work(*forward)
            return x * 1

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            run.work(*backward)
            return grad

    class Update(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            run.work(*update)

    optimizer = Update([weight], lr=0.1)
    loader = torch.utils.data.DataLoader(
        Rows(run.host.clock, wait_ms, rows=2 * steps), batch_size=2
    )
    for batch in loader:
        Kernels.apply((weight * batch).sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        after()


def ms(ns: int | None) -> float:
    assert ns is not None
    return ns / MS
