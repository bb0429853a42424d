"""`--json`: one object per line. The contract is `jsonlines.schema.json`, beside this file.

What is absent is null, never 0. Within a schema version fields are only added: readers ignore
fields that they do not know.
"""

import json
from collections.abc import Sequence
from typing import Final

from ..model.link import LinkStatus
from ..model.noted import Numerics, Throughput
from ..model.observations import Activity, GpuUse, OtherProcess
from ..model.snapshot import (
    GpuPhases,
    MemoryView,
    PhaseStats,
    Rank,
    Snapshot,
    Status,
    StepStats,
)
from ..steps import GpuMemory
from ..verdict.busy_parts import BUSY
from ..verdict.history import Held, PastVerdict
from ..verdict.idle_ledger import IDLE, IdleLedger
from ..verdict.stack_samples import Sampled
from ..verdict.window import OpenStep
from ..wording.steps import drawn_phases
from .jsonlines_verdict import Record, job_record, number, verdict_record

SCHEMA: Final = 1


def line(snapshot: Snapshot, final: bool) -> str:
    """One line without its newline. All ASCII: some readers take U+2028 for the end of a line."""
    return json.dumps(record(snapshot, final), ensure_ascii=True, allow_nan=False)


def record(snapshot: Snapshot, final: bool) -> Record:
    """The snapshot by the contract. `final`: it is the last line."""
    return {
        "schema": SCHEMA,
        "t": round(snapshot.t_unix, 3),
        "final": final,
        "target": _target(snapshot),
        "status": _status(snapshot.status, snapshot.attached_s),
        "steps": _steps(snapshot.steps, drawn_phases(snapshot)),
        "sampled": _sampled(snapshot.sampled),
        "open": _open(snapshot.open_step),
        "busy": _busy(snapshot),
        "gpu": _gpus(snapshot),
        "ledger": _ledger(snapshot.ledger),
        "memory": _memory(snapshot.memory),
        "throughput": _throughput(snapshot.throughput),
        "numerics": _numerics(snapshot.numerics),
        "ranks": [_rank(rank, snapshot.t_ns) for rank in snapshot.ranks] or None,
        "job": job_record(snapshot.job),
        "verdict": verdict_record(snapshot.verdict, snapshot.status.missing),
        "summary": [_held(held) for held in snapshot.summary] if final else None,
        "timeline": _timeline(snapshot) if final else None,
    }


def _target(snapshot: Snapshot) -> Record:
    hello = snapshot.hello
    return {
        "pid": snapshot.pid,
        "script": snapshot.script or None,
        "argv": list(hello.argv) if hello else None,
        "host": hello.host if hello else None,
        "rank": hello.rank if hello else None,
        "world_size": hello.world_size if hello else None,
        "python": hello.python if hello else None,
        "torch": hello.torch if hello else None,
        "cores": number(snapshot.cores),
    }


def _status(status: Status, attached_s: float) -> Record:
    return {
        "mode": status.mode,
        "state": status.state,
        "ended": status.ended,
        "attached_s": number(attached_s),
        "freshness_s": number(status.freshness_s),
        "lost_messages": status.lost_messages,
        "lost_marks": status.lost_marks,
        "unended_phases": status.unended_phases,
        "cost_share": number(status.cost_share),
        "monitor_cpu_percent": number(status.monitor_cpu_percent),
        "link": _link(status.link),
    }


def _link(link: LinkStatus | None) -> Record | None:
    """Of a process on another machine."""
    if link is None:
        return None
    return {
        "place": link.place,
        "lost_s": number(link.lost_s),
        "why": link.why or None,
        "round_trip_ms": number(link.round_trip_ms),
        "clock_ahead_ms": number(link.ahead_ms),
        "clock_uncertain_ms": number(link.uncertain_ms),
        "bytes_s": number(link.bytes_s),
        "left_out": link.left_out,
    }


def _steps(steps: StepStats | None, phases: Sequence[PhaseStats]) -> Record | None:
    if steps is None:
        return None
    return {
        "total": steps.total,
        "in_window": steps.in_window,
        "window_s": number(steps.window_s),
        "p50_ms": number(steps.p50_ms),
        "p95_ms": number(steps.p95_ms),
        "max_ms": number(steps.max_ms),
        "steps_s": number(steps.steps_s),
        "samples_s": number(steps.samples_s),
        "inference": steps.inference,
        "phases": {
            phase.name: {"mean_ms": number(phase.mean_ms), "share": number(phase.share)}
            for phase in phases
        },
    }


def _throughput(found: Throughput | None) -> Record | None:
    if found is None:
        return None
    return {
        "samples_s": number(found.samples_s),
        "tokens_s": number(found.tokens_s),
        "tokens_inferred": found.tokens_inferred,
        "flops_step": number(found.flops_step),
        "flops_given": found.flops_given,
        "flops_s": number(found.flops_s),
        "peak_flops_s": number(found.peak_flops_s),
        "mfu": number(found.mfu),
        "samples_joule": number(found.samples_joule),
    }


def _numerics(found: Numerics | None) -> Record | None:
    if found is None:
        return None
    first = found.not_finite
    return {
        "figures": {
            one.name: {"value": number(one.value), "step": one.step} for one in found.figures
        },
        "not_finite": first
        and {
            "name": first.name,
            "what": first.what,
            "step": first.step,
            "before": first.before,
        },
        "skipped_in_a_row": found.skipped,
    }


def _sampled(sampled: Sampled | None) -> Record | None:
    """Estimates from stack samples, for a run without a probe."""
    if sampled is None or not sampled.samples:
        return None
    return {
        "samples": sampled.samples,
        "step_ms": None if sampled.period_ns is None else number(sampled.period_ns / 1e6),
        "phases": {
            name: {
                "share": number(share.mean),
                "share_low": number(share.low),
                "share_high": number(share.high),
            }
            for name, share in sampled.shares.items()
        },
    }


def _open(step: OpenStep | None) -> Record | None:
    if step is None:
        return None
    return {
        "phase": step.phase,
        "age_s": number(step.age_s),
        "step_age_s": number(step.step_age_s),
        "evaluating": step.evaluating,
        "frame": step.frame,
    }


def _busy(snapshot: Snapshot) -> Record | None:
    """Mean utilisation of the last second."""
    sawtooth = snapshot.sawtooth
    if sawtooth is None:
        return None
    series = sawtooth.series
    second = series.over(series.end_ns - 1_000_000_000, series.end_ns, series.levels[0])
    mean = second.mean if second else None
    return {"what": sawtooth.title, "percent": number(mean), "source": sawtooth.source}


def _gpus(snapshot: Snapshot) -> Record | None:
    if not snapshot.gpus:
        return None
    does = {activity.index: activity for activity in snapshot.activity}
    return {
        "devices": [_gpu(gpu, does.get(gpu.index)) for gpu in snapshot.gpus],
        "clock": _clock(snapshot.gpu_phases),
        "allocator": _allocator(snapshot.gpu_memory[-1]) if snapshot.gpu_memory else None,
    }


def _clock(phases: GpuPhases | None) -> Record | None:
    if phases is None:
        return None
    data, forward, backward, optimizer = phases.lag_ms
    return {
        "steps": phases.steps,
        "every": phases.every,
        "phases": [
            {"name": phase.name, "mean_ms": number(phase.mean_ms), "share": number(phase.share)}
            for phase in phases.phases
        ],
        "exposed_wait_ms": number(phases.exposed_ms),
        "hidden_wait_ms": number(phases.hidden_ms),
        "lag_ms": {
            "data": number(data),
            "forward": number(forward),
            "backward": number(backward),
            "optimizer": number(optimizer),
        },
        "uncertain_ms": number(phases.uncertain_ms),
        "cost_us": number(phases.cost_us),
    }


def _allocator(memory: GpuMemory) -> Record:
    return {
        "device": memory.device,
        "allocated_bytes": memory.allocated,
        "reserved_bytes": memory.reserved,
        "peak_allocated_bytes": memory.peak_allocated,
        "peak_reserved_bytes": memory.peak_reserved,
        "at_backward_bytes": memory.at_backward,
        "retries": memory.retries,
        "ooms": memory.ooms,
    }


def _gpu(gpu: GpuUse, does: Activity | None) -> Record:
    return {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "name": gpu.name,
        "utilization_percent": number(gpu.utilization_percent),
        "activity": _activity(does) if does else None,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
        "target_memory_bytes": gpu.target_memory_bytes,
        "power_w": number(gpu.power_w),
        "power_limit_w": number(gpu.power_limit_w),
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "memory_clock_mhz": gpu.memory_clock_mhz,
        "temperature_c": gpu.temperature_c,
        "throttle_reasons": list(gpu.throttle_reasons),
        "others": [_other(other) for other in gpu.others],
    }


def _activity(does: Activity) -> Record:
    return {
        "source": does.source,
        "over_ms": number(does.interval_ns / 1e6),
        "busy_percent": number(does.busy),
        "sm_percent": number(does.sm),
        "occupancy_percent": number(does.occupancy),
        "tensor_percent": number(does.tensor),
        "fp32_percent": number(does.fp32),
        "dram_percent": number(does.dram),
        "pcie_rx_mb_s": number(does.pcie_rx_mb_s),
        "pcie_tx_mb_s": number(does.pcie_tx_mb_s),
        "nvlink_rx_mb_s": number(does.nvlink_rx_mb_s),
        "nvlink_tx_mb_s": number(does.nvlink_tx_mb_s),
    }


def _other(other: OtherProcess) -> Record:
    return {
        "pid": other.pid,
        "name": other.name or None,
        "memory_bytes": other.memory_bytes,
        "sm_percent": number(other.sm_percent),
    }


def _ledger(ledger: IdleLedger | None) -> Record | None:
    """Where the GPU's time went: the parts add up to 1."""
    if ledger is None:
        return None
    parts = {part: number(ledger.shares[part]) for part in (*BUSY, *IDLE)}
    return {"source": ledger.source, "busy": number(ledger.busy), "parts": parts}


def _memory(memory: MemoryView) -> Record:
    return {
        "rss_bytes": memory.host_rss_bytes,
        "workers_bytes": memory.workers_bytes,
        "total_bytes": memory.total_bytes,
        "available_bytes": memory.available_bytes,
        "slope_bytes_per_100_steps": number(memory.slope_bytes_per_100_steps),
        "growing": None if memory.host_rss_bytes is None else memory.growing,
    }


def _rank(rank: Rank, now_ns: int) -> Record:
    """One rank of this host; `now_ns` is the snapshot's time."""
    return {
        "rank": rank.rank,
        "host": rank.host or None,
        "pid": rank.pid,
        "is_target": rank.is_target,
        "state": rank.state,
        "steps": rank.steps,
        "step_ms": number(rank.step_ms),
        "shares": {
            "data": number(rank.data_share),
            "forward": number(rank.forward_share),
            "backward": number(rank.backward_share),
            "optimizer": number(rank.optimizer_share),
        },
        "open": {
            "phase": rank.open_phase,
            "age_s": number(rank.open_s(now_ns)),
        },
        "last_message_age_s": number(max(0, now_ns - rank.last_seen_ns) / 1e9),
        "device": rank.device,
        "device_memory_bytes": rank.memory_bytes,
        "device_memory_total_bytes": rank.memory_total_bytes,
    }


def _held(held: Held) -> Record:
    return {
        "kind": held.kind,
        "sub": held.sub,
        "share_of_time": number(held.share_of_time),
        "seconds": number(held.ns / 1e9),
        "cost_seconds": None if held.cost_ns is None else number(held.cost_ns / 1e9),
    }


def _timeline(snapshot: Snapshot) -> Record:
    return {
        "entries": [_past(past, snapshot) for past in snapshot.timeline.verdicts],
        "dropped": snapshot.timeline.dropped,
    }


def _past(past: PastVerdict, snapshot: Snapshot) -> Record:
    begins_unix = snapshot.t_unix - snapshot.t_ns / 1e9
    return {
        "kind": past.kind,
        "sub": past.sub,
        "t": round(begins_unix + past.since_ns / 1e9, 3),
        "seconds": number((past.until_ns - past.since_ns) / 1e9),
        "since_step": past.since_step,
        "until_step": past.until_step,
        "share": number(past.share),
        "speedup": number(past.speedup),
        "headline": past.headline,
    }
