"""Hand-made steps on a GPU's clock, and what its counters reported."""

from collections.abc import Iterable
from typing import Any

from gpuwatch.tui.steps import GpuStep, Step
from gpuwatch.tui.verdict.gpu_activity import GpuActivity
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import MS, window

US = 1_000


def gpu_step(host: Step, **parts: Any) -> GpuStep:
    """The step on the GPU's clock: its `*_ms` parts, `lag_ms` at every mark, `wait_ms` on the host;
    a wait of the host's that is not given is exposed."""
    ns = {
        name: round(parts.get(f"{name}_ms", 0.0) * MS)
        for name in ("data", "startup", "forward", "backward", "optimizer", "other")
    }
    lag_ms = parts.get("lag_ms", 0.02)
    lag_ns = None if lag_ms is None else round(lag_ms * MS)
    start_ns = host.start_ns + (lag_ns or 0)
    return GpuStep(
        number=host.number,
        count=host.count,
        start_ns=host.start_ns,
        end_ns=host.end_ns,
        device=0,
        gpu_start_ns=start_ns,
        gpu_end_ns=start_ns + sum(ns.values()),
        **{f"{name}_ns": value for name, value in ns.items()},
        evaluation_ns=0,
        checkpoint_ns=0,
        compile_ns=0,
        phases={},
        host_wait_ns=round(parts.get("wait_ms", parts.get("data_ms", 0.0)) * MS),
        lag_start_ns=lag_ns,
        lag_data_ns=lag_ns,
        lag_forward_ns=lag_ns,
        lag_backward_ns=lag_ns,
        lag_optimizer_ns=lag_ns,
        uncertain_ns=parts.get("uncertain_ns", 10 * US),
    )


def activity(busy: float | None, **reported: Any) -> GpuActivity:
    """The counters' means, percent."""
    given: dict[str, Any] = {
        "source": "gpm",
        "seconds": 10.0,
        "sm": busy,
        "occupancy": None,
        "tensor": None,
        "fp32": None,
        "dram": None,
        "pcie_rx_mb_s": None,
        "pcie_tx_mb_s": None,
        "throttled": 0.0,
        "others": 0,
        **reported,
    }
    return GpuActivity(busy=busy, **given)


def gpu_window(steps: Iterable[Step], on_gpu: dict[str, Any], /, **fields: Any) -> StepWindow:
    """A window whose every third step was measured on the GPU's clock, each the same."""
    seen = window(steps, gpu_present=True, **fields)
    rows = tuple(gpu_step(row, **on_gpu) for row in seen.steps[::3])
    return window(steps, gpu_present=True, gpu_steps=rows, **fields)
