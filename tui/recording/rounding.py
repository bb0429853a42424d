"""What is kept of an observation: times to a microsecond, shares to a tenth of a percent.

A live session takes the rounded observations too, as soon as it can be recorded. So there is
nothing that it has seen and its recording has not, and a replay comes to the same verdicts, bit
for bit. Rounding keeps what rules rely on: order, equality, and phases that add up to their step.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TypeVar

from msgspec.structs import replace

from ...probe.wire.messages import Batch, GpuMemory, GpuStep, Open, Step
from ..model.observations import (
    Activity,
    ActivitySeen,
    AnyObservation,
    Delivered,
    DumpSeen,
    GpusSeen,
    GpuUse,
    OtherProcess,
    PageSeen,
    ProcessesSeen,
    ProcessUse,
    RanksSeen,
    RankUse,
    StacksSeen,
)

_US = 1_000
_KIB = 1_024

Seen = TypeVar("Seen", bound=AnyObservation)
Row = TypeVar("Row", Step, GpuStep)


def kept(seen: AnyObservation) -> AnyObservation:
    """The observation as a recording has it. Keeping it twice changes nothing more."""
    t_ns = _down(seen.t_ns)
    match seen:
        case Delivered():
            return Delivered(t_ns=t_ns, batch=_batch(seen.batch), lost=seen.lost)
        case PageSeen():
            return replace(
                seen,
                t_ns=t_ns,
                open_since_ns=_down(seen.open_since_ns),
                heartbeat_ns=_down(seen.heartbeat_ns),
            )
        case ProcessesSeen():
            return replace(
                seen,
                t_ns=t_ns,
                processes=tuple(map(_process, seen.processes)),
                around=tuple(map(_process, seen.around)),
                machine_cpu_percent=_tenths(seen.machine_cpu_percent),
                throttled_percent=_tenths(seen.throttled_percent),
                others_cpu_percent=_tenths(seen.others_cpu_percent),
            )
        case StacksSeen():
            return replace(seen, t_ns=t_ns, started_ns=_down(seen.started_ns))
        case DumpSeen():
            return replace(seen, t_ns=t_ns, taken_ns=_down(seen.taken_ns))
        case GpusSeen():
            return replace(seen, t_ns=t_ns, gpus=tuple(map(_gpu, seen.gpus)))
        case ActivitySeen():
            return replace(seen, t_ns=t_ns, gpus=tuple(map(_activity, seen.gpus)))
        case RanksSeen():
            return replace(
                seen,
                t_ns=t_ns,
                interval_ns=_down(seen.interval_ns),
                ranks=tuple(map(_rank, seen.ranks)),
            )
    return replace(seen, t_ns=t_ns)


def _batch(batch: Batch) -> Batch:
    return replace(
        batch,
        sent_ns=_down(batch.sent_ns),
        steps=[_step(row) for row in batch.steps],
        open=_open(batch.open),
        gpu_steps=[_gpu_step(row) for row in batch.gpu_steps],
        gpu_memory=[_gpu_memory(reading) for reading in batch.gpu_memory],
    )


def _step(step: Step) -> Step:
    step_phases = _parts(step, step.start_ns)
    most_ns = _down(step.data_max_ns)
    if step.data_max_ns == step.data_ns or most_ns > step_phases.data_ns:
        most_ns = step_phases.data_ns
    return replace(
        step_phases,
        start_ns=_down(step.start_ns),
        end_ns=_down(step.end_ns),
        data_max_ns=most_ns,
    )


def _gpu_step(step: GpuStep) -> GpuStep:
    return replace(
        _parts(step, step.gpu_start_ns),
        start_ns=_down(step.start_ns),
        end_ns=_down(step.end_ns),
        gpu_start_ns=_down(step.gpu_start_ns),
        gpu_end_ns=_down(step.gpu_end_ns),
        host_wait_ns=_down(step.host_wait_ns),
        lag_start_ns=_down_if_known(step.lag_start_ns),
        lag_data_ns=_down_if_known(step.lag_data_ns),
        lag_forward_ns=_down_if_known(step.lag_forward_ns),
        lag_backward_ns=_down_if_known(step.lag_backward_ns),
        lag_optimizer_ns=_down_if_known(step.lag_optimizer_ns),
        uncertain_ns=_down_if_known(step.uncertain_ns),
    )


def _parts(row: Row, start_ns: int) -> Row:
    """With the phases rounded so that they still partition the row from `start_ns` on."""
    figures = (
        *(row.data_ns, row.startup_ns, row.forward_ns, row.backward_ns, row.optimizer_ns),
        *(row.other_ns, row.evaluation_ns, row.checkpoint_ns, row.compile_ns),
        *row.phases.values(),
    )
    data, startup, forward, backward, optimizer, other, evaluation, checkpoint, compiling, *own = (
        _snapped(start_ns, figures)
    )
    return replace(
        row,
        data_ns=data,
        startup_ns=startup,
        forward_ns=forward,
        backward_ns=backward,
        optimizer_ns=optimizer,
        other_ns=other,
        evaluation_ns=evaluation,
        checkpoint_ns=checkpoint,
        compile_ns=compiling,
        phases=dict(zip(row.phases, own, strict=True)),
    )


def _snapped(start_ns: int, parts: Sequence[int]) -> list[int]:
    """Durations that follow each other from `start_ns` on, with every boundary rounded down."""
    rounded: list[int] = []
    at_ns, before_ns = start_ns, _down(start_ns)
    for part_ns in parts:
        at_ns += part_ns
        boundary_ns = _down(at_ns)
        rounded.append(boundary_ns - before_ns)
        before_ns = boundary_ns
    return rounded


def _open(step: Open) -> Open:
    return replace(
        step,
        since_ns=_down(step.since_ns),
        started_ns=_down(step.started_ns),
        data_ns=_down(step.data_ns),
        forward_ns=_down(step.forward_ns),
        backward_ns=_down(step.backward_ns),
        optimizer_ns=_down(step.optimizer_ns),
        other_ns=_down(step.other_ns),
        evaluation_ns=_down(step.evaluation_ns),
        checkpoint_ns=_down(step.checkpoint_ns),
        compile_ns=_down(step.compile_ns),
    )


def _gpu_memory(reading: GpuMemory) -> GpuMemory:
    return replace(reading, t_ns=_down(reading.t_ns))


def _process(process: ProcessUse) -> ProcessUse:
    return replace(
        process,
        cpu_percent=_tenths(process.cpu_percent),
        run_delay_percent=_tenths(process.run_delay_percent),
        thread_cpu_percent=_tenths(process.thread_cpu_percent),
        pin_cpu_percent=_tenths(process.pin_cpu_percent),
        read_bytes_s=_kib(process.read_bytes_s),
        write_bytes_s=_kib(process.write_bytes_s),
    )


def _gpu(gpu: GpuUse) -> GpuUse:
    return replace(
        gpu,
        utilization_percent=_tenths(gpu.utilization_percent),
        power_w=_tenths(gpu.power_w),
        others=tuple(map(_other, gpu.others)),
    )


def _other(process: OtherProcess) -> OtherProcess:
    return replace(process, sm_percent=_tenths(process.sm_percent))


def _activity(activity: Activity) -> Activity:
    return replace(
        activity,
        interval_ns=_down(activity.interval_ns),
        busy=_tenths(activity.busy),
        sm=_tenths(activity.sm),
        occupancy=_tenths(activity.occupancy),
        tensor=_tenths(activity.tensor),
        fp32=_tenths(activity.fp32),
        dram=_tenths(activity.dram),
        pcie_rx_mb_s=_tenths(activity.pcie_rx_mb_s),
        pcie_tx_mb_s=_tenths(activity.pcie_tx_mb_s),
        nvlink_rx_mb_s=_tenths(activity.nvlink_rx_mb_s),
        nvlink_tx_mb_s=_tenths(activity.nvlink_tx_mb_s),
    )


def _rank(rank: RankUse) -> RankUse:
    return replace(
        rank,
        open_since_ns=_down(rank.open_since_ns),
        heartbeat_ns=_down(rank.heartbeat_ns),
        wall_ns=_down(rank.wall_ns),
        data_ns=_down(rank.data_ns),
        forward_ns=_down(rank.forward_ns),
        backward_ns=_down(rank.backward_ns),
        optimizer_ns=_down(rank.optimizer_ns),
        device_busy_percent=_tenths(rank.device_busy_percent),
    )


def _down(ns: int) -> int:
    return ns - ns % _US


def _down_if_known(ns: int | None) -> int | None:
    return None if ns is None else _down(ns)


def _tenths(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _kib(bytes_s: float | None) -> float | None:
    if bytes_s is None or not isfinite(bytes_s):
        return bytes_s
    return float(round(bytes_s / _KIB) * _KIB)
