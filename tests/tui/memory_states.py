"""The fake run with its memory in every state that the view knows."""

from dataclasses import replace

import msgspec

from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.findings import Evidence, Finding, MissingSignal
from gpuwatch.tui.verdict.memory.trends import Exhaustion
from tests.tui import fake_memory, states
from tests.tui.fake_memory import GIB, MIB

LEAK = Finding(
    kind="memory-growth",
    sub="leak",
    severity="critical",
    share=None,
    share_low=None,
    share_high=None,
    speedup=None,
    speedup_is=None,
    headline="GPU memory grows 150 MiB per 100 steps",
    evidence=(
        Evidence("tensors: 61.1 GiB to 61.3 GiB over 193 steps", "hook", 288.0, "MiB"),
        Evidence("memory is full in 46,000 to 52,000 steps (15 h to 17 h)", "hook", 46_000.0),
        Evidence("12.0 tensors of 0.1 MiB on average stay of every step", "hook", 12.0),
    ),
    advice=(
        "append loss.item(), not loss: a result that is kept keeps its graph",
        "look for a list or cache of GPU tensors: bound it, or append .cpu() copies",
    ),
)
HOURS = fake_memory.STEP_S / 3600


def steady(snapshot: Snapshot) -> Snapshot:
    """An allocator that is read, and nothing that grows."""
    run = states.on_gpm(snapshot)
    memory = replace(run.memory, growing=False, slope_bytes_per_100_steps=None)
    allocator = msgspec.structs.replace(
        states.ALLOCATOR, retries=0, inactive_split=1_300 * MIB, allocations=4_212
    )
    return replace(
        run,
        memory=memory,
        verdict=replace(run.verdict, contributors=()),
        gpu_memory=(allocator,),
        series=(
            fake_memory.series("allocated", fake_memory.allocated_bytes, run.t_ns),
            fake_memory.series("reserved", fake_memory.level(66 * GIB), run.t_ns),
            fake_memory.series("others", fake_memory.level(2 * GIB), run.t_ns),
            fake_memory.series("host", fake_memory.level(4.6 * GIB), run.t_ns),
            fake_memory.series("workers", fake_memory.workers_bytes, run.t_ns),
        ),
        trends=(),
    )


def growing(snapshot: Snapshot) -> Snapshot:
    """Tensors leak, and the process rises too; the allocator is short of room."""
    run = steady(snapshot)
    of = {one.name: one for one in run.series}
    of["allocated"] = fake_memory.series("allocated", fake_memory.leaking_bytes, run.t_ns)
    of["host"] = fake_memory.series("host", fake_memory.process_bytes, run.t_ns)
    allocator = msgspec.structs.replace(
        run.gpu_memory[0], allocated=int(61.3 * GIB), peak_allocated=int(64.8 * GIB), retries=2
    )
    return replace(
        run,
        verdict=replace(run.verdict, contributors=(LEAK,)),
        gpu_memory=(allocator,),
        series=tuple(of.values()),
        trends=(
            fake_memory.trend(
                "tensors",
                fake_memory.leaking_bytes,
                run.t_ns,
                1.5,
                Exhaustion(46_000, 52_000, HOURS),
                LEAK,
            ),
            fake_memory.trend(
                "process",
                fake_memory.process_bytes,
                run.t_ns,
                0.38,
                Exhaustion(1_100_000, 1_300_000, HOURS),
                None,
            ),
        ),
    )


def without_gpu(snapshot: Snapshot) -> Snapshot:
    """A machine without one: the process and its workers alone."""
    run = states.healthy_without_gpu(snapshot)
    missing = (MissingSignal("nvml", "no NVIDIA driver found (libnvidia-ml.so.1)"),)
    return replace(run, trends=(), status=replace(run.status, missing=missing))


def several_gpus(snapshot: Snapshot) -> Snapshot:
    """A process on four of them, of which the third is the fullest."""
    run = growing(states.four_gpus(snapshot))
    four = states.four_gpus(snapshot).gpus
    held = (68.9, 61.2, 131.0, 12.5)
    return replace(
        run,
        gpus=tuple(
            msgspec.structs.replace(
                gpu, memory_used_bytes=int(used * GIB), target_memory_bytes=int(used * GIB) - GIB
            )
            for gpu, used in zip(four, held, strict=True)
        ),
        gpu_memory=(
            msgspec.structs.replace(
                run.gpu_memory[0], device=2, allocated=122 * GIB, reserved=128 * GIB
            ),
        ),
    )
