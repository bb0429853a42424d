"""A snapshot with everything on it, and variations of it."""

from dataclasses import replace
from typing import Any

from gpuwatch.tui.model.observations import Activity, GpuUse, OtherProcess
from gpuwatch.tui.model.snapshot import (
    Event,
    MemoryView,
    PhaseStats,
    Sawtooth,
    Snapshot,
    Status,
    StepStats,
)
from gpuwatch.tui.timeseries.series import NO_STEPS, Series
from gpuwatch.tui.timeseries.writer import Growing
from gpuwatch.tui.verdict.findings import Evidence, Finding, MissingSignal, Verdict
from gpuwatch.tui.verdict.history import Held, PastVerdict, VerdictTimeline
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import OpenStep
from tests.unit.session.making import HELLO, MS, S, finding, loader

GIB = 1024**3
MIB = 1024**2

INPUT: Finding = finding(
    "input",
    sub="workers",
    severity="critical",
    share=0.57,
    share_low=0.52,
    share_high=0.61,
    speedup=2.3,
    speedup_is="bound",
    headline="data wait is 57% of every step",
    evidence=(
        Evidence("706 of 1,240 ms/step is spent waiting for the loader", "hook", 706.0, "ms"),
        Evidence("4/4 workers busy on CPU; 81% of their samples decode JPEGs", "py-spy"),
    ),
    advice=("num_workers 4 → 10 (16 cores, 11 idle)", "decode on the GPU"),
)
GROWTH: Finding = finding(
    "memory-growth", sub="growth", severity="warning", headline="host memory grows 38 MiB/100 steps"
)
NO_DRIVER = MissingSignal("nvml", "no NVIDIA driver")
STATUS = Status(
    mode="hooks",
    state="live",
    ended=None,
    freshness_s=0.1,
    lost_messages=0,
    lost_marks=0,
    cost_share=0.0004,
    monitor_cpu_percent=3.5,
    missing=(MissingSignal("nvml", "no NVIDIA driver", "CPU, data wait and stacks still work"),),
)
STEPS = StepStats(
    total=18204,
    in_window=48,
    window_s=59.6,
    p50_ms=1240.0,
    p95_ms=1410.2,
    max_ms=1502.0,
    steps_s=0.8101,
    samples_s=25.9,
    inference=False,
    phases=(
        PhaseStats("data", 706.0, 0.57),
        PhaseStats("forward", 172.0, 0.14),
        PhaseStats("backward", 288.0, 0.23),
        PhaseStats("optimizer", 46.0, 0.04),
        PhaseStats("other", 24.8, 0.02),
    ),
)


def _computes() -> Series:
    growing = Growing("computes", "training", "%", "hook", None, 20 * MS)
    growing.add(400 * S, 0.0)
    growing.add(401 * S, 86.0)
    return growing.series()


def picture(**fields: Any) -> Snapshot:
    """The whole picture, with `fields` replaced."""
    whole = Snapshot(
        t_ns=401 * S,
        t_unix=1_700_000_401.0,
        attached_s=401.0,
        hello=HELLO,
        script="train.py",
        pid=48213,
        status=STATUS,
        verdict=Verdict(
            INPUT, 0.92, 240, 30 * S, (GROWTH,), (MissingSignal("nvml", "no NVIDIA driver"),)
        ),
        steps=STEPS,
        recent=(),
        open_step=OpenStep("data", 0.3, 0.4, False, "_get_data (dataloader.py:1275)"),
        loaders=(loader(),),
        sawtooth=Sawtooth(
            title="training %",
            source="hook, 20 ms",
            note="no GPU: share of time the training process is not waiting",
            series=_computes(),
            step_starts_ns=NO_STEPS,
        ),
        memory=MemoryView(
            host=(),
            host_rss_bytes=int(6.1 * GIB),
            workers_bytes=900 * MIB,
            total_bytes=64 * GIB,
            available_bytes=40 * GIB,
            slope_bytes_per_100_steps=38.0 * MIB,
            growing=True,
        ),
        stacks=Stacks(
            main_samples=312,
            main=(FrameShare(0.94, "_get_data (dataloader.py:1275)", "train.py:88"),),
            worker_samples=300,
            workers=(
                FrameShare(0.81, "load (PIL/ImageFile.py:300)", "dataset.py:41"),
                FrameShare(0.11, "resize (functional.py:468)", None),
            ),
            worker_idle_share=0.02,
        ),
        processes=(),
        cores=16.0,
        gpus=(),
        events=(
            Event(300 * S, 18000, "checkpoint 4.1 s"),
            Event(301 * S, None, "the probe is silent"),
        ),
    )
    return replace(whole, **fields)


def young() -> Snapshot:
    """Attached just now: nothing is known yet."""
    warming = finding("warming-up", headline="0 of 15 steps")
    return picture(
        t_ns=S,
        attached_s=0.5,
        hello=None,
        status=replace(STATUS, state="connecting", freshness_s=None, cost_share=None, missing=()),
        verdict=Verdict(warming, 0.0, None, None, (), ()),
        steps=None,
        open_step=None,
        loaders=(),
        sawtooth=None,
        memory=MemoryView((), None, None, None, None, None, False),
        stacks=None,
        cores=None,
        events=(),
    )


GPU = GpuUse(
    uuid="GPU-1",
    index=0,
    name="NVIDIA H200",
    utilization_percent=41.0,
    memory_used_bytes=80 * GIB,
    memory_total_bytes=140 * GIB,
    target_memory_bytes=60 * GIB,
    power_w=301.5,
    sm_clock_mhz=1980,
    temperature_c=41,
    throttle_reasons=("too hot",),
    memory_clock_mhz=3201,
    power_limit_w=700.0,
    others=(OtherProcess(pid=991, name="", memory_bytes=20 * GIB, sm_percent=3.0),),
)
BY_GPM = Activity(
    index=0,
    source="gpm",
    interval_ns=1000 * MS,
    busy=42.0,
    sm=34.2,
    occupancy=11.0,
    tensor=0.0,
    fp32=None,
    dram=16.9,
    pcie_rx_mb_s=5_900.0,
    pcie_tx_mb_s=70.0,
)
BY_NVML = Activity(index=0, source="utilization", interval_ns=1000 * MS, busy=42.0)

TIMELINE = VerdictTimeline(
    (
        PastVerdict("warming-up", None, 0, 12 * S, 0, 15, None, None, "warming up (9/10)"),
        PastVerdict("healthy", None, 12 * S, 101 * S, 15, 4_100, None, None, "nothing above 10%"),
        PastVerdict(
            "input", "workers", 101 * S, 401 * S, 4_100, 18_204, 0.57, 2.3, "data wait is 57%"
        ),
    ),
    dropped=2,
)
SUMMARY = (
    Held("input", "workers", 300 / 401, 300 * S, 171 * S),
    Held("healthy", None, 89 / 401, 89 * S, None),
    Held("warming-up", None, 12 / 401, 12 * S, None),
)
