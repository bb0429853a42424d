"""The device marks on a real device, by both adapters: kernels of known length in every phase."""

from array import array
from collections.abc import Iterator
from time import perf_counter_ns, sleep
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from gpuwatch.probe.device.events import AcceleratorEvents, CudaEvents, Events
from gpuwatch.probe.device.rate_limit import RateLimiter
from gpuwatch.probe.hooks import backward, dataloader, optimizer
from gpuwatch.probe.recorder import Recorder
from gpuwatch.tui.messages import Passed
from gpuwatch.tui.sources.marks.reader import MarkReader
from gpuwatch.tui.sources.marks.timeline import Timeline
from gpuwatch.tui.steps import GpuStep
from tests.unit.probe.device_runs import crossed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

MS = 1_000_000


class Rows(Dataset[torch.Tensor]):
    """Rows that take so long to load."""

    def __init__(self, wait_ms: float) -> None:
        self._wait_s = wait_ms / 1e3

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> torch.Tensor:
        sleep(self._wait_s)
        return torch.zeros(1)


def cycles_a_ms() -> int:
    """Length of `torch.cuda._sleep`'s cycles, measured once the device is at its full clock."""
    torch.cuda._sleep(1_000_000_000)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.cuda._sleep(20_000_000)
    end.record()
    end.synchronize()
    cycles: int = round(20_000_000 / begin.elapsed_time(end))
    return cycles


class Busy(torch.autograd.Function):
    """Keeps the device busy for given times in forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward: int, back: int) -> torch.Tensor:
        ctx.back = back
        torch.cuda._sleep(forward)
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        torch.cuda._sleep(ctx.back)
        return grad, None, None


def steps_on(events: Events, wait_ms: float, sync: bool = False) -> Iterator[GpuStep]:
    """Sixty steps: 4 ms forward, 8 ms backward on the device, `wait_ms` in the loader."""
    failures: list[Exception] = []
    recorder = Recorder(arm=lambda _: True, trip=failures.append)
    recorder.watched = True
    detach = [hook.attach(recorder) for hook in (dataloader, backward, optimizer)]
    rate_limiter, timeline = RateLimiter(recorder, lambda: events), Timeline()
    rate_limiter.turn(perf_counter_ns(), 0, 0)
    a_ms = cycles_a_ms()
    weight = torch.nn.Parameter(torch.ones(8, device="cuda"))
    update = torch.optim.SGD([weight], lr=0.1)
    assert rate_limiter.stamper is not None
    try:
        for _ in DataLoader(Rows(wait_ms), batch_size=1):
            rate_limiter.stamper.grant(1_000)
            busy: Any = Busy.apply
            busy(weight, 4 * a_ms, 8 * a_ms).sum().backward()
            update.step()
            if sync:
                torch.cuda.synchronize()
    finally:
        for undo in detach:
            undo()
    assert not failures, failures
    reader = MarkReader()
    tail = recorder.tail(10**6)
    some = reader._read(0, b"".join(array("q", tail[at::2]).tobytes() for at in (0, 1)))
    timeline.ledger.switched.extend(reader.numbered(rate_limiter.stamper.switched))
    timeline.feed_all(some)
    for reported in map(crossed, rate_limiter.reports()):
        timeline.ledger.take(
            reader.passed(reported) if isinstance(reported, Passed) else reported, timeline.steps
        )
    return iter(timeline.ledger.steps()[20:])


@pytest.mark.parametrize("adapter", ["cuda", "accelerator"])
def test_a_wait_that_idles_the_device(adapter: str) -> None:
    rows = list(steps_on(_events(adapter), wait_ms=30))
    assert len(rows) >= 20
    for row in rows:
        assert row.forward_ns == pytest.approx(4 * MS, rel=0.1)
        assert row.backward_ns == pytest.approx(8 * MS, rel=0.1)
        assert row.wall_ns == pytest.approx(30.5 * MS, rel=0.1)
        assert row.exposed_ns == pytest.approx(18 * MS, rel=0.15)


@pytest.mark.parametrize("adapter", ["cuda", "accelerator"])
def test_a_wait_behind_a_busy_device(adapter: str) -> None:
    rows = list(steps_on(_events(adapter), wait_ms=6))
    assert rows
    for row in rows:
        assert row.exposed_ns < 0.2 * MS
        assert row.hidden_ns == pytest.approx(6 * MS, rel=0.2)
        assert row.wall_ns == pytest.approx(12 * MS, rel=0.1)


@pytest.mark.parametrize("adapter", ["cuda", "accelerator"])
def test_a_synchronised_loop_has_no_lag_at_its_fetch(adapter: str) -> None:
    rows = list(steps_on(_events(adapter), wait_ms=1, sync=True))
    assert rows
    for row in rows:
        assert row.lag_data_ns is not None
        assert row.lag_backward_ns is not None
        assert row.uncertain_ns is not None
        assert row.uncertain_ns < 100_000
        assert abs(row.lag_data_ns) < 300_000
        assert row.lag_backward_ns == pytest.approx(11.5 * MS, rel=0.15)


def _events(adapter: str) -> Events:
    torch.zeros(1, device="cuda")
    return CudaEvents(torch) if adapter == "cuda" else AcceleratorEvents(torch, "cuda")
