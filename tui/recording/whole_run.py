"""What a recording holds of its whole run: every step, and the counters beside them."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from ..messages import Hello
from ..model.observations import ActivitySeen, Delivered, GpusSeen, Greeted, ProcessesSeen
from ..steps import GpuMemory, GpuStep, Step
from .format import Header
from .reader import Recording

MOST_ROWS: Final = 2_000_000
"""Steps and readings: a week of a loop of three steps a second. A made-up file may hold more."""
MOST_CURVES: Final = 8
COUNTERS: Final = ("busy", "sm", "tensor", "dram")


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters of all the target's GPUs at one moment, their means; None: not measured."""

    t_ns: int
    busy: float | None
    """Percent of the interval, as the others."""
    sm: float | None
    tensor: float | None
    dram: float | None


@dataclass(frozen=True, slots=True)
class Power:
    """What all the target's GPUs draw at one moment."""

    t_ns: int
    watts: float


@dataclass(slots=True)
class WholeRun:
    """Everything of a run that its recording has, in order of time."""

    header: Header
    hello: Hello | None = None
    steps: list[Step] = field(default_factory=list)
    gpu_steps: list[GpuStep] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    power: list[Power] = field(default_factory=list)
    gpus: tuple[str, ...] = ()
    """Names of the target's GPUs."""
    peak_bytes: int | None = None
    """Most that torch had allocated on one GPU; None without one."""
    backward_held: list[tuple[int, int]] = field(default_factory=list)
    """(perf_counter_ns, bytes) torch had allocated on the fullest GPU as a backward began, or else
    at the end of a step: near the height of that step."""
    host_held: list[tuple[int, int]] = field(default_factory=list)
    """(perf_counter_ns, bytes) the training process had resident, pages of files excluded."""
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """(perf_counter_ns, value) of what the run has noted of itself: its loss, its gradients' norm.
    What is not finite is left out."""
    ends_early: str | None = None


def read_whole(recording: Recording) -> WholeRun:
    """Read all of it. Steps that came twice (a monitor that connected again) are counted once:
    by time, since numbers begin again where a program installs the probe once more."""
    run = WholeRun(recording.header)
    newest_ns = newest_gpu_ns = rows = 0
    for entry in recording.entries():
        if isinstance(entry, Greeted):
            run.hello = entry.hello
        elif isinstance(entry, Delivered):
            for step in entry.batch.steps:
                if step.start_ns >= newest_ns and step.count > 0 and step.end_ns > step.start_ns:
                    newest_ns = step.end_ns
                    run.steps.append(step)
            for row in entry.batch.gpu_steps:
                if row.start_ns >= newest_gpu_ns and row.count > 0:
                    newest_gpu_ns = row.end_ns
                    run.gpu_steps.append(row)
            for memory in entry.batch.gpu_memory:
                run.peak_bytes = max(run.peak_bytes or 0, memory.peak_allocated)
            if entry.batch.gpu_memory:
                heights = map(_height, entry.batch.gpu_memory)
                run.backward_held.append((entry.batch.gpu_memory[-1].t_ns, max(heights)))
            for note in entry.batch.notes:
                if note.kind in ("log", "norm") and not note.why and isfinite(note.figure):
                    name = note.name or "gradient norm"
                    if name in run.curves or len(run.curves) < MOST_CURVES:
                        run.curves.setdefault(name, []).append((note.t_ns, note.figure))
            rows += len(entry.batch.steps) + len(entry.batch.gpu_steps)
            rows += len(entry.batch.notes) + len(entry.batch.gpu_memory)
        elif isinstance(entry, ActivitySeen):
            figures = ([getattr(gpu, name) for gpu in entry.gpus] for name in COUNTERS)
            run.readings.append(Reading(entry.t_ns, *map(_mean, figures)))
        elif isinstance(entry, GpusSeen):
            run.gpus = tuple(gpu.name for gpu in entry.gpus)
            drawn = [gpu.power_w for gpu in entry.gpus if gpu.power_w is not None]
            if drawn and len(drawn) == len(entry.gpus):
                run.power.append(Power(entry.t_ns, sum(drawn)))
        elif isinstance(entry, ProcessesSeen):
            for process in entry.processes:
                if process.role == "main":
                    held = process.rss_bytes - (process.file_bytes or 0)
                    run.host_held.append((entry.t_ns, held))
        rows += 1
        if rows > MOST_ROWS:
            run.ends_early = "it holds more than is read of a recording"
            return run
    run.ends_early = recording.ends_early
    return run


def _height(memory: GpuMemory) -> int:
    return memory.allocated if memory.at_backward is None else memory.at_backward


def _mean(figures: list[float | None]) -> float | None:
    known = [one for one in figures if one is not None]
    return sum(known) / len(known) if known else None
