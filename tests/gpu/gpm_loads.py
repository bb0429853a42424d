"""Section `gpm`: six loads, read by our own source, against what one H200 read once.

One process of its own runs the load; this one samples it as a monitor would. Means over 3 s, after
the first. The bar is 5 points (the issue). How busy the last two loads keep a GPU depends on how
fast the host is and how long a product takes: they are held against NVML's utilization in the same
seconds, and what that H200 read of the busy time.
"""

import statistics
import sys
from collections.abc import Iterator
from time import monotonic, perf_counter_ns, sleep
from typing import Any, Final

from gpuwatch.tui.model.observations import Activity, ActivitySeen, GpusSeen
from gpuwatch.tui.sources.nvml import NvmlSource
from tests.measuring.child import Child, children
from tests.measuring.claims import Claim, broken

BAR_POINTS: Final = 5.0
SETTLE_S: Final = 1.5
MEASURE_S: Final = 3.0

LOADS: Final[dict[str, dict[str, float]]] = {
    "bf16 8192^3 matmul": {"busy": 99, "sm": 96, "tensor": 93, "fp32": 0, "dram": 17},
    "fp32 matmul, TF32 off": {"busy": 100, "sm": 97, "tensor": 0, "fp32": 77, "dram": 5},
    "tf32 matmul": {"busy": 99, "sm": 96, "tensor": 93, "fp32": 0, "dram": 18},
    "x.mul_ on 1 GiB": {"busy": 100, "sm": 99, "tensor": 0, "fp32": 2, "dram": 88},
    "add_ on 64 floats in a loop": {"busy": 25, "sm": 0, "tensor": 0, "fp32": 0, "dram": 0},
    "20 matmuls, then 50 ms sleep": {"busy": 27, "sm": 24, "tensor": 24, "fp32": 0, "dram": 6},
}
"""Percent, as one H200 read by NVML alone, without our source."""
BY_HOST: Final = ("add_ on 64 floats in a loop", "20 matmuls, then 50 ms sleep")


def claims() -> Iterator[Claim]:
    """One row a load."""
    started = [("-m", "tests.gpu.gpm_loads", load) for load in LOADS]
    with children(started) as loads:
        for load, child in zip(LOADS, loads, strict=True):
            try:
                yield _row(load, child)
            except Exception as error:
                yield broken("gpm", load, error)
            child.kill()


def _row(load: str, child: Child) -> Claim:
    child.send()
    read, nvml_percent = sampled(child.pid)
    if not read:
        return broken("gpm", load, "the source reported nothing")
    expected = dict(LOADS[load])
    if load in BY_HOST:
        scale = nvml_percent / expected["busy"]
        expected = {name: points * scale for name, points in expected.items()}
    means = {
        name: statistics.mean(getattr(row, name) for row in read if getattr(row, name) is not None)
        for name in LOADS[load]
    }
    off = {name: means[name] - points for name, points in expected.items()}
    measured = ", ".join(f"{name} {means[name]:.0f} ({off[name]:+.0f})" for name in means)
    measured += f"; {len(read)} readings by {read[0].source}, NVML {nvml_percent:.0f}"
    met = max(abs(points) for points in off.values()) <= BAR_POINTS
    figures: dict[str, Any] = {"means": means, "off": off, "readings": len(read)}
    return Claim("gpm", load, measured, f"{BAR_POINTS:.0f} points", met, figures)


def sampled(pid: int) -> tuple[list[Activity], float]:
    """What our source reports of a process, once it has settled; and NVML's mean utilization."""
    source = NvmlSource(pid)
    source.open()
    began_s = monotonic()
    read: list[Activity] = []
    percents: list[float] = []
    while (now_s := monotonic() - began_s) < SETTLE_S + MEASURE_S:
        for seen in source.poll(perf_counter_ns()):
            if isinstance(seen, ActivitySeen) and now_s > SETTLE_S:
                read += seen.gpus
            elif isinstance(seen, GpusSeen) and now_s > SETTLE_S:
                percents += [gpu.utilization_percent or 0.0 for gpu in seen.gpus]
        sleep(source.interval_ns / 1e9)
    source.close()
    return read, statistics.mean(percents) if percents else 0.0


def main(load: str) -> None:
    """Run one load for ever, from the word on."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = load == "tf32 matmul"
    dtype = torch.bfloat16 if load.startswith(("bf16", "20")) else torch.float32
    large = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    other = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    gib = torch.ones(2**28, device="cuda")
    small = torch.zeros(64, device="cuda")
    out = torch.empty_like(large)
    torch.mm(large, other, out=out)
    torch.cuda.synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        if load.startswith("x.mul_"):
            gib.mul_(1.0)
        elif load.startswith("add_"):
            small.add_(1)
        elif load.startswith("20"):
            for _ in range(20):
                torch.mm(large, other, out=out)
            torch.cuda.synchronize()
            sleep(0.05)
        else:
            torch.mm(large, other, out=out)


if __name__ == "__main__":
    main(sys.argv[1])
