"""The figures of a run that two runs are compared by, each with its error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from ..recording.whole_run import COUNTERS, WholeRun
from ..steps import GpuStep, Step
from .intervals import BATCHES, Estimate, most_of, of_runs, ratio_of, settled_from

Unit = Literal["ms", "per s", "%", "W", "J", "bytes"]
Better = Literal["less", "more", "neither"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What a figure is. `key`: by which `--json` and `--fail-if` name it."""

    key: str
    name: str
    unit: Unit
    better: Better


STEP: Final = Figure("step_ms", "step", "ms", "less")
SAMPLES: Final = Figure("samples_s", "samples", "per s", "more")
PHASES: Final = (
    Figure("data_ms", "data wait", "ms", "less"),
    Figure("startup_ms", "loader start-up", "ms", "less"),
    Figure("forward_ms", "forward", "ms", "less"),
    Figure("backward_ms", "backward", "ms", "less"),
    Figure("optimizer_ms", "optimizer", "ms", "less"),
    Figure("evaluation_ms", "evaluation", "ms", "less"),
    Figure("checkpoint_ms", "checkpoint", "ms", "less"),
    Figure("compile_ms", "compile", "ms", "less"),
    Figure("other_ms", "other", "ms", "less"),
)
"""Per step, on the host's clock; the keys without "_ms" are the fields of `Step`."""
GPU_WAIT: Final = Figure("gpu_data_ms", "GPU waits for data", "ms", "less")
POWER: Final = Figure("power_w", "GPU power", "W", "neither")
JOULES: Final = Figure("joules_sample", "energy per sample", "J", "less")
READ: Final = (
    Figure("gpu_busy", "GPU busy", "%", "neither"),
    Figure("sm_active", "SM active", "%", "neither"),
    Figure("tensor_active", "tensor cores active", "%", "neither"),
    Figure("dram_active", "memory bandwidth used", "%", "neither"),
)
"""In the order of `COUNTERS`."""
PEAK: Final = Figure("peak_bytes", "torch memory, peak", "bytes", "less")
HOST: Final = Figure("host_bytes", "host memory, most", "bytes", "less")
FIGURES: Final = (STEP, SAMPLES, *PHASES, GPU_WAIT, POWER, JOULES, *READ, PEAK, HOST)


@dataclass(frozen=True, slots=True)
class Settled:
    """A run without its warming up."""

    steps: Sequence[Step]
    left_out: int
    """Steps before."""
    gpu_steps: Sequence[GpuStep]
    run: WholeRun

    @property
    def since_ns(self) -> int:
        return self.steps[0].start_ns if self.steps else 0


def settled(run: WholeRun) -> Settled:
    """Leaves out what comes before the step time has settled, which is half of the run at most, and
    the steps before the recording, which the probe hands to every monitor: else two recordings of
    one process would be of nearly the same steps. Where the recording itself has too few for its
    batches, those before it count."""
    recorded = [step for step in run.steps if step.start_ns >= run.header.begins_ns]
    if len(recorded) < BATCHES:
        recorded = run.steps
    at = settled_from([_wall_ns(step) / step.count for step in recorded])
    steps = recorded[at:]
    since_ns = steps[0].start_ns if steps else 0
    gpu_steps = [row for row in run.gpu_steps if row.start_ns >= since_ns]
    return Settled(steps, sum(step.count for step in recorded[:at]), gpu_steps, run)


def measured(parts: Sequence[Settled]) -> dict[str, Estimate]:
    """Each figure that all the runs of one side have, by its key."""
    each = [dict(_figures(one, len(parts) == 1)) for one in parts]
    shared = set.intersection(*({*one} for one in each)) if each else set()
    found = {}
    for figure in FIGURES:
        if figure.key in shared:
            found[figure.key] = of_runs([one[figure.key] for one in each])
    return found


def _figures(part: Settled, is_alone: bool) -> Iterator[tuple[str, Estimate]]:
    """Noise that outlasts a batch is in the errors of a run that is alone on its side: that of
    several lies in what they differ by."""
    steps, run = part.steps, part.run
    counts = [float(step.count) for step in steps]
    walls = [_wall_ns(step) / 1e6 for step in steps]
    mean = partial(ratio_of, seconds=sum(walls) / 1000 if is_alone else None)
    yield from _known(STEP, mean(walls, counts))
    for phase in PHASES:
        field = phase.key.replace("_ms", "_ns")
        spent = [getattr(step, field) / 1e6 for step in steps]
        yield from _known(phase, mean(spent, counts))
    if part.gpu_steps:
        of = [float(row.count) for row in part.gpu_steps]
        yield from _known(GPU_WAIT, mean([row.exposed_ns / 1e6 for row in part.gpu_steps], of))
    for figure, name in zip(READ, COUNTERS, strict=True):
        rows = [getattr(one, name) for one in run.readings if one.t_ns >= part.since_ns]
        if known := [one for one in rows if one is not None]:
            yield from _known(figure, mean(known, [1.0] * len(known)))
    drawn = [one.watts for one in run.power if one.t_ns >= part.since_ns]
    power = mean(drawn, [1.0] * len(drawn))
    yield from _known(POWER, power)
    if all(step.samples is not None for step in steps):
        samples = [float(step.samples or 0) for step in steps]
        rate = mean([1000 * one for one in samples], walls)
        yield from _known(SAMPLES, rate)
        if rate is not None and power is not None and rate.mean > 0:
            errors = (power.error / power.mean) ** 2 if power.mean else 0.0
            errors += (rate.error / rate.mean) ** 2
            joules = power.mean / rate.mean
            freedom = min(power.freedom, rate.freedom)
            yield JOULES.key, Estimate(joules, joules * errors**0.5, freedom)
    for figure, held in ((PEAK, run.backward_held), (HOST, run.host_held)):
        seen = [float(size) for t_ns, size in held if t_ns >= part.since_ns]
        most = run.peak_bytes if figure is PEAK else max((size for _, size in held), default=0)
        if most:
            yield from _known(figure, most_of(float(most), seen))


def _known(figure: Figure, estimate: Estimate | None) -> Iterator[tuple[str, Estimate]]:
    if estimate is not None:
        yield figure.key, estimate


def _wall_ns(step: Step) -> int:
    return step.end_ns - step.start_ns
