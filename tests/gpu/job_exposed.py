"""The training side of `exposed`: a window of steps under torch.profiler, device marks on all."""

from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import Any, Final

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from tests.gpu.every_step import stamp_every_step
from tests.gpu.shapes import Loop, Observer, synchronize
from tests.gpu.trace_truth import FETCH

WARM_STEPS: Final = 12
TRAILING_STEPS: Final = 10


class Ranges(Observer):
    """Names each fetch in the trace."""

    def __init__(self) -> None:
        self.number = 0

    def fetching(self) -> AbstractContextManager[Any]:
        return record_function(f"{FETCH}{self.number}")


def work(loop: Loop, steps: int, trace: str | None) -> dict[str, Any]:
    """Starts on the host of the profiled steps, perf_counter_ns; the trace goes to `trace`."""
    for _ in range(3):
        loop.step()
    stamp_every_step()
    for _ in range(WARM_STEPS):
        loop.step()
    synchronize()
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    ranges = Ranges()
    starts_ns: list[int] = []
    with profile(activities=activities) as profiler:
        for ranges.number in range(steps):
            starts_ns.append(perf_counter_ns())
            loop.step(ranges)
        synchronize()
    for _ in range(TRAILING_STEPS):
        loop.step()
    profiler.export_chrome_trace(trace or "trace.json")
    return {"starts_ns": starts_ns}
