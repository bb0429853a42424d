"""The same run in every state that the screen knows."""

from dataclasses import replace
from typing import Any

import msgspec

from gpuwatch.tui.model.observations import Activity, OtherProcess
from gpuwatch.tui.model.snapshot import (
    GpuPhases,
    MemoryView,
    PhaseStats,
    Scope,
    Snapshot,
    Spread,
    Status,
)
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.timeseries.series import NO_STEPS, StepEdges
from gpuwatch.tui.verdict.busy_parts import BUSY
from gpuwatch.tui.verdict.findings import Evidence, Finding, Kind, MissingSignal, Note, Verdict
from gpuwatch.tui.verdict.history import PastVerdict, VerdictTimeline
from gpuwatch.tui.verdict.idle_ledger import IDLE, IdleLedger, Part
from tests.tui import fake_stacks
from tests.tui.fake_run import GIB, MS, NO_GPU_NOTE, S, busy, series_of

NOTHING_KNOWN = MemoryView((), None, None, None, None, None, False)


def _finding(
    kind: Kind, headline: str, *advice: str, evidence: tuple[Evidence, ...] = ()
) -> Finding:
    severity = "critical" if kind == "stalled" else "info"
    return Finding(
        kind=kind,
        sub=None,
        severity=severity,  # type: ignore[arg-type]
        share=None,
        share_low=None,
        share_high=None,
        speedup=None,
        speedup_is=None,
        headline=headline,
        evidence=evidence,
        advice=advice,
    )


def connecting(snapshot: Snapshot) -> Snapshot:
    """Nothing was received yet."""
    finding = _finding("warming-up", "waiting for the first steps")
    return replace(
        snapshot,
        hello=None,
        attached_s=0.2,
        status=Status("no probe", "connecting", None, None, 0, 0, None, None, ()),
        verdict=Verdict(finding, 0.0, None, None, (), ()),
        steps=None,
        recent=(),
        open_step=None,
        sawtooth=None,
        memory=NOTHING_KNOWN,
        stacks=None,
        trees=None,
        processes=(),
        cores=None,
        gpus=(),
        events=(),
        series=(),
        trends=(),
    )


def warming_up(snapshot: Snapshot) -> Snapshot:
    """Too few steps for a verdict."""
    place = "34 of 40 main-thread samples (85%) are in SelfPlay.predict (train.py:88)"
    evidence = (Evidence(place, "py-spy", 0.85),)
    finding = _finding("warming-up", "4 of 10 steps seen", evidence=evidence)
    assert snapshot.steps is not None
    assert snapshot.sawtooth is not None
    saw = snapshot.sawtooth
    return replace(
        snapshot,
        verdict=Verdict(finding, 0.0, None, None, (), ()),
        steps=replace(snapshot.steps, total=4, in_window=4, window_s=5.0),
        sawtooth=replace(
            saw,
            series=series_of(busy, snapshot.t_ns, saw.series.interval_ns, samples=60),
            step_starts_ns=StepEdges.of(saw.step_starts_ns[-5:]),
        ),
        memory=replace(
            snapshot.memory,
            host=snapshot.memory.host[-5:],
            slope_bytes_per_100_steps=None,
            growing=False,
        ),
        stacks=None,
        trees=None,
        events=(),
        trends=(),
    )


def stalled(snapshot: Snapshot) -> Snapshot:
    """No step for a while."""
    evidence = (
        Evidence("31 s in DataLoader.__next__, a step took 1.24 s", "hook", 31.0, "s"),
        Evidence("main thread in select.poll ← _try_get_data (dataloader.py:1133)", "py-spy"),
    )
    advice = "worker 48233 waits for a disk: look at the mount that it reads from"
    finding = _finding("stalled", "no step for 31 s", advice, evidence=evidence)
    assert snapshot.open_step is not None
    stands = replace(snapshot.open_step, age_s=31.0, step_age_s=31.4)
    verdict = Verdict(finding, 0.9, None, snapshot.t_ns - 31 * S, (), ())
    return replace(snapshot, verdict=verdict, open_step=stands)


def ended(snapshot: Snapshot) -> Snapshot:
    """The target was killed."""
    status = replace(snapshot.status, state="ended", ended="was killed (signal 9) 12 s ago")
    return replace(snapshot, t_ns=snapshot.t_ns + 12 * S, status=status)


def incomplete(snapshot: Snapshot) -> Snapshot:
    """Signals are missing: no probe, no stacks."""
    finding = _finding(
        "incomplete",
        "no probe in the process",
        "add `import probe; probe.install()` to train.py, or start it with gpuwatch run",
    )
    missing = (
        MissingSignal("feed", "no probe in process 48213"),
        MissingSignal(
            "stacks", "ptrace refused (yama ptrace_scope=1)", "sudo -E gpuwatch attach 48213"
        ),
    )
    status = Status("no probe", "live", None, None, 0, 0, None, 2.2, missing)
    verdict = Verdict(finding, 0.0, None, None, (), missing)
    assert snapshot.sawtooth is not None
    return replace(
        snapshot,
        sawtooth=replace(snapshot.sawtooth, step_starts_ns=NO_STEPS),
        status=status,
        verdict=verdict,
        steps=None,
        recent=(),
        stacks=None,
        trees=None,
        events=(),
        trends=(),
    )


def healthy_without_gpu(snapshot: Snapshot) -> Snapshot:
    """Nothing above the threshold, on a machine without a GPU."""
    saw = snapshot.sawtooth
    assert saw is not None
    own = replace(saw, title="training %", source="hook, 100 ms", note=NO_GPU_NOTE)
    missing = (MissingSignal("nvml", "no NVIDIA driver found (libnvidia-ml.so.1)"),)
    evidence = (Evidence("data wait 2% and Python between the phases 3% of a step", "hook"),)
    finding = replace(
        _finding("healthy", "no cause holds 10% of a step", evidence=evidence), severity="info"
    )
    memory = replace(snapshot.memory, growing=False, slope_bytes_per_100_steps=None)
    return replace(
        snapshot,
        gpus=(),
        sawtooth=own,
        memory=memory,
        trends=(),
        trees=fake_stacks.ON_HOST,
        verdict=Verdict(finding, 0.85, 10, snapshot.t_ns - 95 * S, (), missing),
    )


def a_ledger() -> IdleLedger:
    """Of a run that waits for data more than half of the time."""
    shares: dict[Part, float] = dict.fromkeys((*BUSY, *IDLE), 0.0)
    shares |= {"used": 0.391, "others": 0.03, "input": 0.548, "host": 0.016, "launch": 0.009}
    shares["unexplained"] = 1 - sum(shares.values())
    return IdleLedger(shares, "gpm")


def with_ledger(snapshot: Snapshot) -> Snapshot:
    """The same run with its GPU's time accounted for."""
    return replace(on_gpm(snapshot), ledger=a_ledger())


def _in_products(t_ns: int) -> float:
    """How busy its tensor cores are, in percent: less than it is itself."""
    return max(0.0, busy(t_ns) - 30.0)


def on_gpm(snapshot: Snapshot) -> Snapshot:
    """The same run where the GPU has counters, somebody else is on it, and it is hot."""
    saw = snapshot.sawtooth
    assert saw is not None
    tensor = series_of(_in_products, snapshot.t_ns, saw.series.interval_ns, name="tensor")
    does = Activity(
        index=0,
        source="gpm",
        interval_ns=1000 * MS,
        busy=42.0,
        sm=34.2,
        occupancy=11.0,
        tensor=19.8,
        fp32=2.1,
        dram=16.9,
        pcie_rx_mb_s=5_900.0,
        pcie_tx_mb_s=70.0,
        nvlink_rx_mb_s=0.0,
        nvlink_tx_mb_s=0.0,
    )
    gpu = msgspec.structs.replace(
        snapshot.gpus[0],
        throttle_reasons=("too hot",),
        memory_clock_mhz=3201,
        power_limit_w=700.0,
        others=(OtherProcess(pid=991, name="jupyter", memory_bytes=2 * GIB, sm_percent=3.0),),
    )
    own = replace(saw, title="SM active %", source="gpm 100 ms", tensor=tensor)
    return replace(
        snapshot,
        sawtooth=own,
        activity=(does,),
        gpus=(gpu,),
        gpu_phases=ON_GPU,
        gpu_memory=(ALLOCATOR,),
    )


ON_GPU = GpuPhases(
    steps=33,
    phases=(
        PhaseStats("data", 410.0, 0.54),
        PhaseStats("forward", 120.0, 0.16),
        PhaseStats("backward", 230.0, 0.3),
    ),
    exposed_ms=410.0,
    hidden_ms=18.0,
    lag_ms=(0.02, 61.0, 118.0, 119.0),
    uncertain_ms=0.011,
    every=3,
    cost_us=71.0,
)
ALLOCATOR = GpuMemory(
    t_ns=0,
    step=1207,
    device=0,
    allocated=41 * GIB,
    reserved=66 * GIB,
    active=43 * GIB,
    peak_allocated=62 * GIB,
    peak_reserved=66 * GIB,
    at_backward=60 * GIB,
    retries=2,
    ooms=0,
)


def short_steps(snapshot: Snapshot) -> Snapshot:
    """Steps of 170 ms, which 100 ms samples show only folded."""
    run = on_gpm(snapshot)
    assert run.steps is not None
    assert run.sawtooth is not None
    shorter: dict[str, Any] = {"p50_ms": 170.0, "p95_ms": 181.0, "max_ms": 203.0, "steps_s": 5.87}
    phases = tuple(_scaled(one, 17 / 124) for one in run.steps.phases)
    on_gpu = tuple(_scaled(one, 17 / 76) for one in ON_GPU.phases)
    now_ns = snapshot.t_ns
    starts_ns = StepEdges.of(now_ns - (400 - i) * 170 * MS for i in range(400))
    series = series_of(lambda t_ns: 38.0 + t_ns // (100 * MS) * 59 % 100 / 4, now_ns, 100 * MS)
    return replace(
        run,
        steps=replace(run.steps, phases=phases, **shorter),
        gpu_phases=replace(ON_GPU, phases=on_gpu, exposed_ms=on_gpu[0].mean_ms),
        recent=tuple(
            msgspec.structs.replace(
                one,
                start_ns=one.start_ns * 17 // 124,
                end_ns=one.end_ns * 17 // 124,
                data_ns=one.data_ns * 17 // 124,
            )
            for one in run.recent
        ),
        sawtooth=replace(run.sawtooth, series=series, step_starts_ns=starts_ns),
        scope=Scope(
            step_ns=170 * MS,
            steps=141,
            source="gpm 100 ms",
            mean=(8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.0, 71.0, 94.0, 92.0, 88.0, 61.0),
            low=(3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 64.0, 88.0, 90.0, 80.0, 50.0),
            high=(15.0, 4.0, 2.0, 0.0, 1.0, 3.0, 20.0, 80.0, 99.0, 97.0, 95.0, 72.0),
        ),
    )


def _scaled(phase: PhaseStats, by: float) -> PhaseStats:
    one = phase.spread
    error_ms = by * (one.error_ms or 0.0) if one else None
    spread = one and Spread(by * one.p50_ms, by * one.p95_ms, by * one.max_ms, error_ms)
    return replace(phase, mean_ms=by * phase.mean_ms, spread=spread)


def four_gpus(snapshot: Snapshot) -> Snapshot:
    """A process on four of them, of which one does not report everything."""
    run = on_gpm(snapshot)
    does, gpu = run.activity[0], run.gpus[0]
    return replace(
        run,
        gpus=tuple(
            msgspec.structs.replace(gpu, index=i, throttle_reasons=(), others=()) for i in range(4)
        ),
        activity=tuple(
            msgspec.structs.replace(does, index=i, tensor=None if i == 2 else 20.0 + i)
            for i in range(3)
        ),
    )


def after_others(snapshot: Snapshot) -> Snapshot:
    """The same verdict, after two others."""
    now_ns = snapshot.t_ns
    earlier = (
        PastVerdict("warming-up", None, now_ns - 700 * S, now_ns - 690 * S, 0, 15, None, None, ""),
        PastVerdict(
            "compute", "precision", now_ns - 690 * S, now_ns - 420 * S, 15, 9_000, 0.4, 1.7, ""
        ),
        PastVerdict("host", None, now_ns - 420 * S, now_ns - 372 * S, 9_000, 17_900, 0.2, 1.2, ""),
        PastVerdict("input", "workers", now_ns - 372 * S, now_ns, 17_900, 18_204, 0.57, 2.3, ""),
    )
    return replace(snapshot, timeline=VerdictTimeline(earlier, 0))


NOTES = (
    Note(
        "anomaly detection was left on: torch.autograd.set_detect_anomaly(False)",
        "it slows the backward, 23% of every step",
        "hook",
    ),
    Note(
        "a GradScaler with bfloat16, which needs none: GradScaler(enabled=False)",
        "3% of main-thread samples are in it",
        "py-spy",
    ),
)


def noted(snapshot: Snapshot) -> Snapshot:
    """The same run, with two settings worth a word."""
    return replace(snapshot, verdict=replace(snapshot.verdict, notes=NOTES))


LONG: tuple[str, str] = (
    "GPU idle 79% of each step, waiting for data",
    "num_workers 2 → 10, about 4.8x (each batch costs a worker 79 ms, the rest of the step 8 ms)",
)


def long_verdict(snapshot: Snapshot) -> Snapshot:
    """As of a recording from an H200: the headline has no room beside the qualities."""
    headline, advice = LONG
    finding = replace(
        snapshot.verdict.finding,
        headline=headline,
        advice=(advice,),
        evidence=(
            Evidence("the GPU stands idle 31 ms of 39 ms a step for its batch (±2 ms)", "event"),
            Evidence("a batch costs a worker 79 ms", "hook"),
        ),
        speedup=None,
    )
    return replace(snapshot, verdict=replace(snapshot.verdict, finding=finding))


def gains_about(snapshot: Snapshot) -> Snapshot:
    """The advice ends with the gain that the finding has as a number."""
    finding = replace(
        snapshot.verdict.finding,
        advice=('bf16: with torch.autocast("cuda", torch.bfloat16), about 5.7x',),
        speedup=5.71,
        speedup_is="estimate",
    )
    return replace(snapshot, verdict=replace(snapshot.verdict, finding=finding))
