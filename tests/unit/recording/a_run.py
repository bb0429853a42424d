"""A minute of training that never happened: 20 steps a second on a GPU, eight workers, jitter."""

import random
from bisect import bisect_right
from collections.abc import Iterator

from gpuwatch.probe.wire import marks
from gpuwatch.tui.model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    GpusSeen,
    GpuUse,
    Greeted,
    PageSeen,
    ProcessesSeen,
    ProcessRole,
    ProcessUse,
    StackCount,
    StacksSeen,
    ThreadRole,
)
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.steps import GpuClock, GpuMemory, GpuStep, Step
from tests.unit.session.making import HELLO, MS, S, delivered, loader, open_at

START = 7_000 * S
MOMENTS = 19
"""At which a chunk of the stacks samples."""
SETTINGS = Settings(
    threads=16,
    matmul_precision="highest",
    cudnn_benchmark=False,
    deterministic=False,
    anomaly=True,
    autocast="bfloat16",
    scaler=True,
    optimizer="AdamW",
    parameters=161,
    parameter_bytes=348_160_004,
    parameter_dtype="float32",
    parameter_device="cuda",
    cudnn_tf32=True,
    capability=90,
    set_to_none=True,
)
GIB = 1024**3
KIB = 1024


def a_run(seconds: float = 60.0, seed: int = 1) -> list[AnyObservation]:
    """Everything that its sources deliver, in the order of the time they deliver it."""
    rng = random.Random(seed)
    end_ns = START + round(seconds * S)
    steps = list(_steps(rng, end_ns))
    sources = (_batches(rng, steps, end_ns), _pages(rng, steps, end_ns), _gpu(rng, end_ns))
    others = (_activity(rng, end_ns), _processes(rng, end_ns), _stacks(rng, end_ns))
    seen = [one for source in (*sources, *others) for one in source]
    return [Greeted(t_ns=START, hello=HELLO), *sorted(seen, key=lambda one: one.t_ns)]


def _ticks(rng: random.Random, every_ms: float, end_ns: int) -> Iterator[int]:
    """Moments on a grid, each late by as much as threads are."""
    at_ns = START + rng.randrange(MS)
    while (at_ns := at_ns + round(every_ms * MS)) < end_ns:
        yield at_ns + round(rng.expovariate(1 / 0.4) * MS)


def _ns(rng: random.Random, ms: float) -> int:
    return round(rng.gauss(ms, ms * 0.05) * MS)


def _steps(rng: random.Random, end_ns: int) -> Iterator[tuple[Step, GpuStep]]:
    at_ns = gpu_ns = START
    number = 0
    while at_ns < end_ns:
        number += 1
        data, forward, backward = _ns(rng, 18), _ns(rng, 6), _ns(rng, 9)
        optimizer, other = _ns(rng, 2), _ns(rng, 15)
        wall = data + forward + backward + optimizer + other
        step = Step(
            number=number,
            count=1,
            start_ns=at_ns,
            end_ns=at_ns + wall,
            data_ns=data,
            startup_ns=0,
            forward_ns=forward,
            backward_ns=backward,
            optimizer_ns=optimizer,
            other_ns=other,
            evaluation_ns=0,
            checkpoint_ns=0,
            compile_ns=0,
            phases={},
            fetches=1,
            backwards=1,
            optimizer_steps=1,
            samples=64,
            ready=rng.choice((0, 0, 0, 1, 2)),
            data_max_ns=data,
            inference=False,
        )
        lag = gpu_ns - at_ns
        gpu_data, gpu_forward, gpu_backward = _ns(rng, 11), _ns(rng, 9), _ns(rng, 17)
        gpu_optimizer = _ns(rng, 3)
        gpu_other = max(0, at_ns + wall + 800_000 - gpu_ns - gpu_data - gpu_forward - gpu_backward)
        gpu_other = max(0, gpu_other - gpu_optimizer)
        lags = [lag := lag + gpu_data - data]
        for gpu_part, part in (
            (gpu_forward, forward),
            (gpu_backward, backward),
            (gpu_optimizer, optimizer),
        ):
            lags.append(lag := lag + gpu_part - part)
        gpu_wall = gpu_data + gpu_forward + gpu_backward + gpu_optimizer + gpu_other
        gpu_step = GpuStep(
            number=number,
            count=1,
            start_ns=at_ns,
            end_ns=at_ns + wall,
            device=0,
            gpu_start_ns=gpu_ns,
            gpu_end_ns=gpu_ns + gpu_wall,
            data_ns=gpu_data,
            startup_ns=0,
            forward_ns=gpu_forward,
            backward_ns=gpu_backward,
            optimizer_ns=gpu_optimizer,
            other_ns=gpu_other,
            evaluation_ns=0,
            checkpoint_ns=0,
            compile_ns=0,
            phases={},
            host_wait_ns=data,
            lag_start_ns=gpu_ns - at_ns,
            lag_data_ns=lags[0],
            lag_forward_ns=lags[1],
            lag_backward_ns=lags[2],
            lag_optimizer_ns=lags[3],
            uncertain_ns=6_000 + rng.randrange(900),
        )
        yield step, gpu_step
        at_ns += wall
        gpu_ns += gpu_wall


def _batches(
    rng: random.Random, steps: list[tuple[Step, GpuStep]], end_ns: int
) -> Iterator[AnyObservation]:
    ends_ns = [step.end_ns for step, _ in steps]
    gpu_ends_ns = [row.gpu_end_ns for _, row in steps]
    ended = resolved = 0
    for sequence, t_ns in enumerate(_ticks(rng, 100, end_ns), 1):
        first, ended = ended, bisect_right(ends_ns, t_ns)
        first_on_gpu, resolved = resolved, bisect_right(gpu_ends_ns, t_ns - 60 * MS)
        started_ns = steps[ended][0].start_ns if ended < len(steps) else t_ns
        every_second = sequence % 10 == 0
        yield delivered(
            [step for step, _ in steps[first:ended]],
            t_ns / MS,
            sequence=sequence,
            marks=6 * ended,
            open=open_at(
                started_ns / MS + rng.uniform(0, (t_ns - started_ns) / MS),
                kind=marks.FETCH_LEAVE,
                started_ns=started_ns,
                data_ns=_ns(rng, 18),
            ),
            loaders=[loader(num_workers=8)] if sequence == 1 else [],
            settings=SETTINGS if sequence == 1 else None,
            rss_bytes=3 * GIB + rng.randrange(64) * 4 * KIB if every_second else None,
            gpu_steps=[row for _, row in steps[first_on_gpu:resolved]],
            gpu_memory=[_allocator(rng, t_ns, ended)] if every_second else [],
            gpu_clocks=[GpuClock(0, 6_000 + rng.randrange(900), 1, 21_000 + rng.randrange(900), 0)]
            if every_second
            else [],
        )


def _allocator(rng: random.Random, t_ns: int, step: int) -> GpuMemory:
    return GpuMemory(
        t_ns=t_ns - rng.randrange(30 * MS),
        step=step,
        device=0,
        allocated=9 * GIB + rng.randrange(512) * 512,
        reserved=12 * GIB,
        active=9 * GIB + rng.randrange(512) * 512,
        peak_allocated=11 * GIB,
        peak_reserved=12 * GIB,
        at_backward=11 * GIB + rng.randrange(512) * 512,
        retries=0,
        ooms=0,
        inactive_split=GIB + rng.randrange(512) * 512,
        device_allocs=480 + step // 50,
        allocations=2_048 + rng.randrange(16),
        lowest=9 * GIB,
        fraction=1.0,
    )


def _pages(
    rng: random.Random, steps: list[tuple[Step, GpuStep]], end_ns: int
) -> Iterator[AnyObservation]:
    ends_ns = [step.end_ns for step, _ in steps]
    for t_ns in _ticks(rng, 250, end_ns):
        yield PageSeen(
            t_ns=t_ns,
            open_kind=rng.choice((marks.FETCH_ENTER, marks.FETCH_LEAVE)),
            open_since_ns=t_ns - rng.randrange(50 * MS),
            steps=bisect_right(ends_ns, t_ns),
            heartbeat_ns=t_ns - rng.randrange(100 * MS),
            state=1,
        )


def _gpu(rng: random.Random, end_ns: int) -> Iterator[AnyObservation]:
    for t_ns in _ticks(rng, 1_000, end_ns):
        use = GpuUse(
            uuid="GPU-1",
            index=0,
            name="NVIDIA H200",
            utilization_percent=float(rng.randrange(60, 90)),
            memory_used_bytes=14 * GIB,
            memory_total_bytes=140 * GIB,
            target_memory_bytes=13 * GIB,
            power_w=rng.uniform(300, 420),
            sm_clock_mhz=1980,
            temperature_c=rng.randrange(41, 44),
            memory_clock_mhz=3201,
            power_limit_w=700.0,
        )
        yield GpusSeen(t_ns=t_ns, gpus=(use,))


def _activity(rng: random.Random, end_ns: int) -> Iterator[AnyObservation]:
    before_ns = START
    for t_ns in _ticks(rng, 100, end_ns):
        percent = [min(100.0, max(0.0, rng.gauss(mean, 12))) for mean in (70, 55, 24, 30, 6, 35)]
        activity = Activity(
            index=0,
            source="gpm",
            interval_ns=t_ns - before_ns,
            busy=percent[0],
            sm=percent[1],
            occupancy=percent[2],
            tensor=percent[3],
            fp32=percent[4],
            dram=percent[5],
            pcie_rx_mb_s=rng.gauss(900, 150),
            pcie_tx_mb_s=rng.gauss(40, 9),
            nvlink_rx_mb_s=0.0,
            nvlink_tx_mb_s=0.0,
        )
        before_ns = t_ns
        yield ActivitySeen(t_ns=t_ns, gpus=(activity,))


def _processes(rng: random.Random, end_ns: int) -> Iterator[AnyObservation]:
    for look, t_ns in enumerate(_ticks(rng, 500, end_ns)):
        workers = [_process(rng, 100 + i, "worker", look) for i in range(8)]
        yield ProcessesSeen(
            t_ns=t_ns,
            processes=(_process(rng, 48213, "main", look), *workers),
            cores=16.0,
            machine_cpu_percent=rng.uniform(50, 60),
            memory_total_bytes=128 * GIB,
            memory_available_bytes=90 * GIB + rng.randrange(1 << 15) * 4 * KIB,
            throttled_percent=rng.uniform(0, 5) if look else None,
            others_cpu_percent=rng.uniform(0, 90) if look else None,
        )


def _process(rng: random.Random, pid: int, role: ProcessRole, look: int) -> ProcessUse:
    return ProcessUse(
        pid=pid,
        role=role,
        name="pt_data_worker" if role == "worker" else "python",
        cpu_percent=rng.gauss(95, 3),
        rss_bytes=GIB + rng.randrange(1 << 9) * 4 * KIB,
        pss_bytes=GIB // 2 + rng.randrange(1 << 9) * KIB if look % 10 == 0 else None,
        read_bytes_s=rng.gauss(20, 4) * 1024 * KIB,
        write_bytes_s=0.0,
        status=rng.choice("RRRSD"),
        threads=71 if role == "main" else 1,
        run_delay_percent=rng.uniform(0, 9) if look else None,
        thread_cpu_percent=rng.uniform(60, 99) if look else None,
        in_kernel_percent=rng.uniform(2, 5) if look and role == "main" else None,
        page_faults_s=rng.gauss(4_000, 300) if look and role == "main" else None,
    )


def _stacks(rng: random.Random, end_ns: int) -> Iterator[AnyObservation]:
    """A chunk every four seconds; where in a function a sample falls is anybody's guess."""
    for t_ns in _ticks(rng, 4_000, end_ns):
        stacks = [_stack(rng, "main", 48213, (18, 11), bits) for bits in _parts(rng, 9)]
        for worker in range(8):
            pid = 100 + worker
            stacks += [_stack(rng, "worker", pid, (12, 4), bits) for bits in _parts(rng, 6)]
        yield StacksSeen(
            t_ns=t_ns,
            started_ns=t_ns - 2 * S - rng.randrange(MS),
            samples=MOMENTS,
            stacks=tuple(stacks),
            moments_ms=tuple(sorted(rng.randrange(2_000) for _ in range(MOMENTS))),
            seen=(1 << MOMENTS) - 1,
        )


def _parts(rng: random.Random, count: int) -> list[int]:
    """Every moment in one of so many parts, none of them empty, as bits."""
    parts = [0] * count
    moments = rng.sample(range(MOMENTS), MOMENTS)
    for at, moment in enumerate(moments):
        parts[at if at < count else rng.randrange(count)] |= 1 << moment
    return parts


def _stack(
    rng: random.Random, role: ThreadRole, pid: int, depths: tuple[int, int], moments: int
) -> StackCount:
    outer = [f"{role}_{depth} (site-packages/torch/{role}.py:{90 * depth})" for depth in range(7)]
    inner = [
        f"{role}_inner_{depth} (torch/nn/modules/{role}_{depth}.py:{rng.randrange(40, 52)})"
        for depth in range(rng.randrange(1, 3))
    ]
    middle = [f"call_{depth} (module.py:{depth})" for depth in range(rng.choice(depths))]
    thread = "MainThread" if role == "main" else "QueueFeederThread"
    frames = (*outer, *middle, *inner)
    return StackCount(
        role=role,
        pid=pid,
        thread=thread,
        frames=frames,
        count=moments.bit_count(),
        moments=moments,
    )
