"""What the publisher sends, without the codec that the monitor reads it with.

Each has the fields of the struct of the same name in `wire.messages` (`wire.dump`), where they are
explained; a test holds them together.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .settings.reading import Reading


class Loader(NamedTuple):
    key: int
    kind: str
    num_workers: int | None
    prefetch_factor: int | None
    pin_memory: bool
    persistent_workers: bool
    batch_size: int | None
    batches: int | None
    worker_pids: tuple[int, ...]
    dataset: str
    iterations: int = 1
    evaluation: bool = False
    batch_bytes: int | None = None
    batch_tensors: int | None = None
    batch_device: str | None = None
    pinned: bool | None = None


class Step(NamedTuple):
    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    start_ns: int
    end_ns: int
    data_ns: int
    startup_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    phases: dict[str, int]
    fetches: int
    backwards: int
    optimizer_steps: int
    samples: int | None
    ready: int | None
    data_max_ns: int
    inference: bool


class GpuStep(NamedTuple):
    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    start_ns: int
    end_ns: int
    device: int
    gpu_start_ns: int
    gpu_end_ns: int
    data_ns: int
    startup_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    phases: dict[str, int]
    host_wait_ns: int
    lag_start_ns: int | None
    lag_data_ns: int | None
    lag_forward_ns: int | None
    lag_backward_ns: int | None
    lag_optimizer_ns: int | None
    uncertain_ns: int | None

    @property
    def wall_ns(self) -> int:
        """Length of the step on the device's clock."""
        return self.gpu_end_ns - self.gpu_start_ns


class GpuMemory(NamedTuple):
    t_ns: int
    step: int
    device: int
    allocated: int
    reserved: int
    active: int
    peak_allocated: int
    peak_reserved: int
    at_backward: int | None
    retries: int
    ooms: int
    inactive_split: int | None = None
    device_allocs: int | None = None
    allocations: int | None = None
    lowest: int | None = None
    fraction: float | None = None


class GpuClock(NamedTuple):
    device: int
    uncertain_ns: int | None
    every: int
    cost_ns: int
    dropped: int


class Open(NamedTuple):
    kind: int
    since_ns: int
    started_ns: int
    data_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    evaluation_ns: int
    checkpoint_ns: int
    compile_ns: int
    user_phase: str | None
    evaluating: bool


class ThreadStack(NamedTuple):
    name: str
    training: bool
    frames: list[tuple[str, str, int]]
    cut: bool


class Dump(NamedTuple):
    taken_ns: int
    threads: list[ThreadStack]
    left_out: int
    why_not: str = ""


class Batch(NamedTuple):
    sequence: int
    sent_ns: int
    steps: Sequence[Step]
    open: Open
    loaders: list[Loader]
    lost_marks: int
    rss_bytes: int | None
    mark_cost_ns: int | None
    marks: int
    fault: str | None
    gpu_steps: Sequence[GpuStep] = ()
    gpu_memory: Sequence[GpuMemory] = ()
    gpu_clocks: Sequence[GpuClock] = ()
    settings: Reading | None = None
    file_bytes: int | None = None
    refused: int = 0
