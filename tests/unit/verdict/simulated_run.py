"""A training loop on a simulated host and GPU, kernel by kernel, with its marks on both clocks.

The launch queue holds 1,000 kernels, the GPU runs one after the other, and workers make batches in
turn, two ahead each. Nothing here knows of the forecast: what removing a cause gives is found by
running the loop again without it.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from gpuwatch.tui.steps import GpuStep, Step
from tests.unit.verdict.windows import MS, S

QUEUE = 1_000
PREFETCH = 2
LAUNCH_GAP_MS = 0.004
"""From an empty GPU's first kernel being issued to its start."""
PHASES = (("forward", 0.35), ("backward", 0.6), ("optimizer", 0.05))
"""And their part of the kernels."""
STEPS = 160
WARM = 60
"""Of which so many are left out: until queue and workers have settled."""

NO_SYNC = 0


def never(_: int) -> float:
    """No batch takes longer than usual."""
    return 0.0


@dataclass(frozen=True)
class Loop:
    """What the host does in a step, and what the GPU has to do. Milliseconds."""

    kernels: int
    kernel_ms: float
    issue_ms: float
    """Host time to issue one."""
    make_ms: float = 0.0
    """What a batch costs whoever makes it."""
    workers: int = 0
    sync_every: int = NO_SYNC
    """Steps between two `loss.item()`."""
    python_ms: float = 0.2
    spike_ms: Callable[[int], float] = never
    """What single batches cost on top."""
    data_free: bool = False


@dataclass(frozen=True)
class Ran:
    """What a probe would have seen, and what it could not."""

    steps: tuple[Step, ...]
    gpu_steps: tuple[GpuStep, ...]
    busy: float
    """Part of the time in which a kernel ran, 0 to 1."""
    step_ms: float
    waits: float
    """Part of the host's time in `loss.item()`, 0 to 1."""
    worker_busy: float
    """Part of the time in which a worker made a batch, 0 to 1."""


@cache
def ran(loop: Loop) -> Ran:
    """Run it."""
    return _Running(loop).all()


def gain(loop: Loop, **without: object) -> float:
    """Steps a second without a cause, over those with it."""
    return ran(loop).step_ms / ran(replace(loop, **without)).step_ms  # type: ignore[arg-type]


class _Running:
    """Time in ms."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.chance = random.Random(1)
        self.host = self.gpu = self.worked = self.waited = 0.0
        self.queue: deque[float] = deque()
        """When the kernels that may still be pending start."""
        self.free = [0.0] * loop.workers
        """When each worker has made its last batch."""
        self.taken = [0.0] * (PREFETCH * max(1, loop.workers))
        """When the batch was taken whose place in the queue the next one takes."""
        self.making = 0.0
        self.marks: list[tuple[str, float, float]] = []

    def all(self) -> Ran:
        steps, on_gpu = [], []
        began = (0.0, 0.0, 0.0, 0.0)
        for number in range(1, STEPS + 1):
            if number == WARM + 1:
                began = (self.gpu, self.worked, self.waited, self.making)
            self.marks = [("data", self.host, self.gpu_at())]
            self.step(number)
            if number > WARM:
                step, gpu_step = self.rows(number)
                steps.append(step)
                on_gpu.append(gpu_step)
        whole = self.gpu - began[0]
        return Ran(
            steps=tuple(steps),
            gpu_steps=tuple(on_gpu),
            busy=(self.worked - began[1]) / whole,
            step_ms=whole / (STEPS - WARM),
            waits=(self.waited - began[2]) / whole,
            worker_busy=(self.making - began[3]) / whole / max(1, self.loop.workers),
        )

    def step(self, number: int) -> None:
        self.fetch(number)
        for phase, part in PHASES:
            self.marks.append((phase, self.host, self.gpu_at()))
            self.launch(round(part * self.loop.kernels))
        self.marks.append(("other", self.host, self.gpu_at()))
        self.host += self.loop.python_ms
        if self.loop.sync_every and number % self.loop.sync_every == 0:
            blocked = max(0.0, self.gpu - self.host)
            self.waited += blocked
            self.host += blocked + 0.02
        self.marks.append(("end", self.host, self.gpu_at()))

    def fetch(self, number: int) -> None:
        loop = self.loop
        if loop.data_free:
            return
        cost = (loop.make_ms + loop.spike_ms(number)) * self.chance.gauss(1, 0.03)
        if not loop.workers:
            self.host += cost
            return
        worker, place = number % loop.workers, number % len(self.taken)
        ready = max(self.free[worker], self.taken[place]) + cost
        self.free[worker] = ready
        self.making += cost
        self.host = max(self.host, ready)
        self.taken[place] = self.host

    def launch(self, kernels: int) -> None:
        # With names of its own: five million kernels were most of what the tests of forecasts took.
        host, gpu, worked, queue = self.host, self.gpu, self.worked, self.queue
        issue_ms, kernel_ms, gauss = self.loop.issue_ms, self.loop.kernel_ms, self.chance.gauss
        for _ in range(kernels):
            host += issue_ms
            if len(queue) == QUEUE and (free := queue.popleft()) > host:
                host = free
            start = host + LAUNCH_GAP_MS
            if start < gpu:
                start = gpu
            queue.append(start)
            cost = kernel_ms * gauss(1, 0.02)
            gpu = start + cost
            worked += cost
        self.host, self.gpu, self.worked = host, gpu, worked

    def gpu_at(self) -> float:
        """When the GPU reaches a mark that the host records now."""
        return max(self.gpu, self.host + LAUNCH_GAP_MS)

    def rows(self, number: int) -> tuple[Step, GpuStep]:
        names = [name for name, _, _ in self.marks]
        host = [S + round(at * MS) for _, at, _ in self.marks]
        gpu = [S + round(at * MS) for _, _, at in self.marks]
        ours = {f"{name}_ns": b - a for name, a, b in zip(names, host, host[1:], strict=False)}
        theirs = {f"{name}_ns": b - a for name, a, b in zip(names, gpu, gpu[1:], strict=False)}
        lag = dict(zip(names, (b - a for a, b in zip(host, gpu, strict=True)), strict=True))
        beside = {"evaluation_ns": 0, "checkpoint_ns": 0, "compile_ns": 0, "startup_ns": 0}
        step = Step(
            number=number, count=1, start_ns=host[0], end_ns=host[-1], **ours, **beside, phases={},
            fetches=1, backwards=1, optimizer_steps=1, samples=None, inference=False,
            ready=int(ours["data_ns"] < 0.1 * MS), data_max_ns=ours["data_ns"],
        )  # fmt: skip
        gpu_step = GpuStep(
            number=number, count=1, start_ns=host[0], end_ns=host[-1], device=0,
            gpu_start_ns=gpu[0], gpu_end_ns=gpu[-1], **theirs, **beside, phases={},
            host_wait_ns=ours["data_ns"], lag_start_ns=lag["data"], lag_data_ns=lag["forward"],
            lag_forward_ns=lag["backward"], lag_backward_ns=lag["optimizer"],
            lag_optimizer_ns=lag["other"], uncertain_ns=1_000,
        )  # fmt: skip
        return step, gpu_step


def _spikes(number: int) -> float:
    return 600.0 if number % 12 == 0 else 0.0


SCENARIOS = {
    "A": Loop(300, 0.3, 0.008, make_ms=20, workers=4),
    "B": Loop(60, 1.5, 0.01, make_ms=67, workers=1, sync_every=10),
    "C": Loop(300, 0.3, 0.008, make_ms=30),
    "D": Loop(300, 0.3, 0.008, make_ms=30, sync_every=1),
    "E": Loop(300, 0.3, 0.008, make_ms=800, workers=4),
    "F": Loop(300, 0.3, 0.008, make_ms=460, workers=4, sync_every=1),
    "G": Loop(300, 0.3, 0.008, make_ms=80, workers=2, spike_ms=_spikes, sync_every=1),
    "H": Loop(2_700, 0.003, 0.009),
    "I": Loop(2_700, 0.003, 0.009, make_ms=10),
    "J": Loop(3_000, 0.03, 0.008, make_ms=20, workers=4),
}
"""GPU-bound with a fast loader; a hidden wait with `.item()` every 10; a hidden serial wait; the
same with `.item()` each step; a loader twice too slow; one mildly too slow with `.item()`; one with
spikes; launch-bound; launch-bound with a serial loader; GPU-bound with the queue full."""
