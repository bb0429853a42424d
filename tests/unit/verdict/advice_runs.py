"""A run for each symptom in test_advice_table: what a session would have seen of it."""

from dataclasses import fields as fields_of
from typing import Any

from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import lines, settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import GIB, MIB, S, even, loader, run, stacks, window

BEHIND = {"forward_ms": 40, "backward_ms": 70, "optimizer_ms": 6, "lag_ms": 60}
"""A GPU that is the limit."""
KEPT_UP = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}
"""One that has caught up with the host at every mark."""
DECODE = (0.81, "load (PIL/ImageFile.py:300)", "__getitem__ (dataset.py:41)")


NAMES = {field.name for field in fields_of(StepWindow)}


def limited(**reported: Any) -> StepWindow:
    """A GPU that is busy all the time, with these counters."""
    fields = {name: reported.pop(name) for name in list(reported) if name in NAMES}
    host = even(60, data_ms=0.2, forward_ms=40, backward_ms=70, optimizer_ms=6)
    given = {"sm": 96, "tensor": 0, "fp32": 0, "dram": 10, **reported}
    return gpu_window(host, BEHIND, activity=activity(99, **given), **fields)


def launching(**fields: Any) -> StepWindow:
    """Tiny kernels: the host cannot issue them fast enough."""
    return gpu_window(even(60, **KEPT_UP), KEPT_UP, activity=activity(17, sm=2), **fields)


def waiting(have: int, wait_ms: float, /, **fields: Any) -> StepWindow:
    """A step of 14 ms beside its wait for data, without a GPU."""
    rows = even(60, data_ms=wait_ms, forward_ms=6, backward_ms=7, optimizer_ms=1)
    return window(rows, **{"loaders": (loader(have),), **fields})


def bursts(longest_ms: float) -> StepWindow:
    """One batch in twenty is late, of workers that have time to spare."""
    rows = run(200, lambda n: {"data_ms": longest_ms if n % 20 == 0 else 0, "forward_ms": 40})
    return window(rows, loaders=(loader(4),), cores=16.0, stacks=stacks(workers=[DECODE], idle=0.5))


def optimizing(**reported: Any) -> StepWindow:
    """An optimizer that takes a third of the step on the GPU."""
    parts = {"forward_ms": 20, "backward_ms": 40, "optimizer_ms": 30}
    on_gpu = {**parts, "lag_ms": 20}
    fields = {name: reported.pop(name) for name in list(reported) if name in NAMES}
    given = {"settings": settings(**reported), "activity": activity(99, sm=60), **fields}
    return gpu_window(even(60, **parts), on_gpu, **given)


def syncing(line: str) -> StepWindow:
    """The host waits on a line, and the GPU then waits for the host."""
    return gpu_window(
        even(60, **KEPT_UP), KEPT_UP,
        stacks=lines((0.4, "train (train.py:88)", line), (0.6, "f (model.py:1)", "x = layer(x)")),
        activity=activity(70),
    )  # fmt: skip


def copying(pinned: bool, mib: float, tensors: int, rx_mb_s: float, line: str) -> StepWindow:
    """Batches on their way to a GPU that waits for them."""
    batch = loader(
        4, batch_bytes=round(mib * MIB), batch_tensors=tensors, batch_device="cpu", pinned=pinned
    )
    return gpu_window(
        even(60, **KEPT_UP), KEPT_UP, loaders=(batch,),
        stacks=lines((0.6, "train (train.py:31)", line), (0.4, "f (model.py:1)", "x = layer(x)")),
        activity=activity(25, pcie_rx_mb_s=rx_mb_s),
    )  # fmt: skip


def device_memory(peak: float, kept: float = 0.2, **fields: Any) -> dict[str, Any]:
    """The allocator of a GPU of 100 GiB: parts of it taken at a step's height and after it."""
    newest = GpuMemory(
        t_ns=S, step=60, device=0, allocated=round(kept * 100 * GIB),
        reserved=round(peak * 100 * GIB), active=round(kept * 100 * GIB),
        peak_allocated=round(peak * 100 * GIB), peak_reserved=round(peak * 100 * GIB),
        at_backward=None, retries=0, ooms=0, **fields,
    )  # fmt: skip
    return {"gpu_memory": (newest,), "gpu_memory_limit_bytes": 100 * GIB}


def starved(**fields: Any) -> StepWindow:
    """A GPU that stands idle while the training thread makes its batch."""
    parts = {"data_ms": 50, "forward_ms": 20, "backward_ms": 20, "optimizer_ms": 10}
    given = {"loaders": (loader(0),), "activity": activity(45), **fields}
    return gpu_window(even(60, **parts), parts, **given)


def allocator(rising: bool = False, in_pieces: bool = False) -> tuple[GpuMemory, ...]:
    """A reading a second, of 10 steps: 2 MiB and 20 tensors more a step, or memory in pieces."""
    readings = []
    for second in range(1, 61):
        step = 10 * second
        held = GIB + (2 * MIB * step if rising else 0)
        readings.append(
            GpuMemory(
                t_ns=S * second,
                step=step,
                device=0,
                allocated=held,
                reserved=2 * held,
                active=held,
                peak_allocated=held + GIB,
                peak_reserved=2 * held,
                at_backward=None,
                retries=step // 20 if in_pieces else 0,
                ooms=0,
                inactive_split=held if in_pieces else 0,
                device_allocs=0,
                allocations=500 + (20 * step if rising else 0),
            )
        )
    return tuple(readings)
