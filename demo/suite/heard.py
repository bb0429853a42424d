"""What a recording holds, before anybody judges it."""

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from gpuwatch.probe.wire.messages import Step
from gpuwatch.tui.model.observations import Delivered, GpusSeen, ProcessesSeen
from gpuwatch.tui.recording.reader import Recording


@dataclass(frozen=True)
class Heard:
    """The raw signals of one run."""

    began_ns: int
    """When the monitor attached."""
    begun_step: int
    """Steps completed by then."""
    steps: tuple[Step, ...]
    """Those of before included, as far as the probe still had them."""
    utilization: tuple[tuple[int, float], ...]
    """Readings of the first GPU: perf_counter_ns and percent."""
    gpu: str | None
    """Its name; None without one."""
    torch: str | None
    others_cores: float | None
    """Of the cores that it may use, those that other processes used: the mean."""


def heard(file: Path) -> Heard:
    """Read a recording from its beginning to its end."""
    recording = Recording(file)
    steps: dict[int, Step] = {}
    readings: list[tuple[int, float]] = []
    others: list[float] = []
    gpu: str | None = None
    try:
        for entry in recording.entries():
            match entry:
                case Delivered():
                    steps.update((step.number, step) for step in entry.batch.steps)
                case GpusSeen() if entry.gpus:
                    first = entry.gpus[0]
                    gpu = first.name
                    if first.utilization_percent is not None:
                        readings.append((entry.t_ns, first.utilization_percent))
                case ProcessesSeen() if entry.others_cpu_percent is not None:
                    others.append(entry.others_cpu_percent / 100)
    finally:
        recording.close()
    began_ns = recording.header.started_ns
    rows = tuple(steps[number] for number in sorted(steps))
    before = [step.number for step in rows if step.end_ns <= began_ns]
    return Heard(
        began_ns=began_ns,
        begun_step=max(before, default=0),
        steps=rows,
        utilization=tuple(readings),
        gpu=gpu,
        torch=recording.header.torch,
        others_cores=mean(others) if others else None,
    )
