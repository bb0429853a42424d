"""A run whose memory is given, as the probe reads it and a session hands it to the verdict.

The allocator is looked at by the probe's own `MemoryLook`, at moments that the steps make; its
readings go through a real session, which is asked once a second as a face would.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwatch.probe.device.memory_look import MemoryLook
from gpuwatch.tui.messages import Allocated
from gpuwatch.tui.model.observations import GpusSeen, GpuUse
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.steps import GpuMemory, Step
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.memory_watch import MemoryWatch
from gpuwatch.tui.verdict.window import HostUse, RunEvent, StepWindow
from tests.unit.session.making import delivered, judged, loader, step
from tests.unit.verdict.memory_families import Series
from tests.unit.verdict.windows import GIB, MIB, MS, S

LIMIT_BYTES = 80 * GIB


@dataclass
class GrowthRun:
    """What was reported of memory over a run, by the number of steps done."""

    growth_step: int | None = None
    leak_step: int | None = None
    last_leak_step: int | None = None
    critical_growth: bool = False
    """Growth that was not confirmed was called critical."""
    findings: list[Finding] = field(default_factory=list)

    def take(self, step: int, found: Sequence[Finding]) -> None:
        """What stands at a look."""
        for finding in found:
            if self.growth_step is None:
                self.growth_step = step
            if finding.sub == "leak":
                self.leak_step = self.leak_step or step
                self.last_leak_step = step
            elif finding.severity == "critical":
                self.critical_growth = True
            if not self.findings or self.findings[-1] != finding:
                self.findings.append(finding)


class _Device:
    """Its allocator holds what it is made to: `probe.device.events.Events`, as far as asked."""

    mib = 0.0

    def device(self) -> int:
        return 0

    def fraction(self, device: int) -> float | None:
        return None

    def allocator(self, device: int) -> dict[str, object]:
        """As torch nests it."""
        held = round(self.mib * MIB)
        return {
            "allocated_bytes": {"all": {"current": held, "peak": held * 2}},
            "reserved_bytes": {"all": {"current": held * 2, "peak": held * 2}},
            "active_bytes": {"all": {"current": held}},
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }


def readings(series: Series, step_ms: float) -> list[GpuMemory]:
    """What the probe reports of the allocator of a device that holds so many MiB at each step."""
    device = _Device()
    look = MemoryLook(device)  # type: ignore[arg-type]
    reported: list[GpuMemory] = []
    for number, mib in enumerate(series, start=1):
        now_ns = S + round(number * step_ms * MS)
        device.mib = mib
        if not look.due(now_ns) or (row := look.at_end(now_ns)) is None:
            continue
        seen = Allocated(*row)
        reported.append(
            GpuMemory(
                t_ns=now_ns,
                step=number,
                device=0,
                allocated=seen.allocated,
                reserved=seen.reserved,
                active=seen.active,
                peak_allocated=seen.peak_allocated,
                peak_reserved=seen.peak_reserved,
                at_backward=None,
                retries=0,
                ooms=0,
                lowest=seen.lowest,
            )
        )
    return reported


def watched(series: Series, step_ms: float, epoch: int | None = None) -> GrowthRun:
    """By the verdict's watch alone, on what of a session's windows memory is judged by."""
    reported, run, watch = tuple(readings(series, step_ms)), GrowthRun(), MemoryWatch()
    steps = _steps(60, step_ms)
    for seen in range(1, len(reported) + 1):
        done = reported[seen - 1].step
        moments = [RunEvent(at, "epoch") for at in range(epoch or done, done, epoch or done)]
        window = StepWindow(
            **_UNKNOWN,
            now_ns=reported[seen - 1].t_ns,
            steps=steps,
            steps_seen=done,
            compiled=(),
            all_recent=steps,
            gpu_memory=reported[:seen],
            gpu_memory_limit_bytes=LIMIT_BYTES,
            warm_step=5,
            moments=tuple(moments),
        )
        run.take(done, watch.update(window))
    return run


def in_a_session(series: Series, step_ms: float, epoch: int | None = None) -> GrowthRun:
    """By a whole session with the real engine."""
    reported, run = readings(series, step_ms), GrowthRun()
    session = Session(1, "train.py", 0, Engine())
    steps = _steps(len(series), step_ms)
    begun = 0
    for reading in reported:
        fresh = list(steps[begun : reading.step])
        begun = reading.step
        iterations = 1 + ((reading.step - 1) // epoch if epoch else 0)
        session.ingest(
            delivered(
                fresh,
                reading.t_ns / MS,
                gpu_memory=[reading],
                loaders=[loader(num_workers=0, worker_pids=(), iterations=iterations)],
            )
        )
        session.ingest(GpusSeen(t_ns=reading.t_ns, gpus=(_gpu(reading.reserved),)))
        snapshot = judged(session, reading.t_ns, 0.0)
        run.take(reading.step, [one.finding for one in snapshot.trends if one.finding is not None])
    return run


def _steps(count: int, step_ms: float) -> tuple[Step, ...]:
    """Equal ones; their times follow from their numbers, so that they drift nowhere."""
    return tuple(
        step(number, 1_000 + (number - 1) * step_ms, forward_ms=step_ms)
        for number in range(1, count + 1)
    )


def _gpu(reserved: int) -> GpuUse:
    return GpuUse(
        uuid="GPU-1",
        index=0,
        name="H200",
        utilization_percent=90.0,
        memory_used_bytes=reserved,
        memory_total_bytes=LIMIT_BYTES,
        target_memory_bytes=reserved,
        power_w=None,
        sm_clock_mhz=None,
        temperature_c=None,
    )


_UNKNOWN: dict[str, Any] = {
    "warmup_left": 0,
    "loaders": (),
    "cores": None,
    "machine_cpu_percent": None,
    "host": HostUse(),
    "workers": None,
    "stacks": None,
    "memory": (),
    "worker_memory": (),
    "memory_limit_bytes": None,
    "open_step": None,
    "gpu_present": True,
    "ended": False,
    "missing": (),
}
