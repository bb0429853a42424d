"""Collectives move data while nothing computes: communication that is not hidden."""

from statistics import median
from typing import Final, Literal, NamedTuple

from ...messages import DdpTimes
from ..findings import Evidence, Finding
from ..forecast.gain import Gain
from ..format import ms, percent, size
from ..job.crowding import undisturbed
from ..job.facts import ExchangeFacts, Job, emptiness
from ..on_device import counted_by
from ..scoring import cause, speedup_of
from ..statistics import Share, at_most, times
from ..thresholds import ranks as limits
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


class Exposed(NamedTuple):
    """Communication that compute does not hide."""

    share: Share
    measured: bool
    """By DistributedDataParallel itself; else at most."""
    overlap: float | None
    """Part of the communication that is hidden."""


def exposed(job: Job, window: StepWindow) -> Exposed | None:
    """What DistributedDataParallel has measured (`ExchangeFacts.exposed`); else a bound: no more
    than the transfer, and no more than the time in which a GPU was busy with few of its
    multiprocessors (`_empty`). Of either the part that others on the GPUs do not explain."""
    exchange = job.exchange
    if exchange is None or not exchange.steps:
        return None
    left = undisturbed(job)
    if (measured := exchange.exposed) is not None:
        return Exposed(times(measured, left), True, _hidden(exchange))
    transfer, empty = exchange.transfer, _empty(job, exchange, window)
    if transfer is None or empty is None:
        return None
    return Exposed(times(at_most(transfer, empty), left), False, None)


def _empty(job: Job, exchange: ExchangeFacts, window: StepWindow) -> float | None:
    """Part of the time in which a GPU is busy with few multiprocessors and waits for no rank: of
    that which waits least, as most of what that has is transfer. Where the counters of all are not
    known, of the target."""
    every = {one.rank: one.empty for one in job.ranks if one.empty is not None}
    if every.keys() >= set(exchange.ranks):
        first = min(exchange.ranks, key=lambda rank: exchange.waiting(rank).mean)
        return max(0.0, every[first] - exchange.waiting(first).mean)
    activity = window.activity
    if activity is None or activity.busy is None or activity.sm is None:
        return None
    waiting = window.collectives.waiting if window.collectives is not None else 0.0
    return max(0.0, emptiness(activity.busy, activity.sm) - waiting)


def _hidden(exchange: ExchangeFacts) -> float:
    return median(
        times.overlap_ns / times.comm_ns
        for sample in exchange.ddp
        for times in [min(sample.values(), key=lambda one: one.comm_ns)]
        if times.comm_ns > 0
    )


def communication(window: StepWindow) -> Finding | None:
    """Exposed communication, once nobody is late: a transfer is as long as its shortest rank's."""
    job = window.job
    if job is None or job.exchange is None:
        return None
    found = exposed(job, window)
    if found is None or found.share.mean < CONTRIBUTOR:
        return None
    exchange = job.exchange
    share, steps = found.share, len(exchange.steps)
    count = sum(one.collectives for one in exchange.steps) / steps
    moved = sum(one.bytes for one in exchange.steps) / steps
    sub = _sub(job, exchange, count, moved)
    evidence = [_evidence(found, exchange, count, moved), *_transfer(exchange, moved)]
    if (left := undisturbed(job)) < 1:
        text = f"others on the GPUs stretch collectives: about {percent(left)} of it is their own"
        evidence.append(Evidence(text, "nvml"))
    evidence += _links(window)
    if len(exchange.ranks) < job.world_size:
        text = (
            f"{len(exchange.ranks)} of {job.world_size} ranks are seen: waits for ranks on other "
        )
        evidence.append(Evidence(f"{text}hosts look like transfer here", "collectives"))
    most = "" if found.measured else "up to "
    return cause(
        "communication",
        sub,
        share,
        f"{_NAMED[sub]} {most}{percent(share.mean)} of each step",
        tuple(evidence),
        _advice(_ddp(exchange), sub),
        gain=Gain(speedup_of(share.mean), "estimate" if found.measured else "bound"),
    )


Sub = Literal["exposed", "small-buckets", "bandwidth", "waiting"]
_NAMED: Final[dict[Sub, str]] = {
    "exposed": "communication that compute does not hide takes",
    "small-buckets": "communication that compute does not hide takes",
    "bandwidth": "the links are the limit: communication that compute does not hide takes",
    "waiting": "collectives that wait for ranks on other hosts, or for their network, take",
}


def _sub(job: Job, exchange: ExchangeFacts, count: float, moved: float) -> Sub:
    """What holds the exchange up: many small ones, the links' rate, ranks elsewhere, or no more
    than that nothing hides it."""
    if count >= limits.MANY_COLLECTIVES and moved / count < limits.SMALL_BUCKET_BYTES:
        return "small-buckets"
    at_best = exchange.at_best
    if at_best is None:
        return "exposed"
    if at_best < limits.STRETCHED and len(exchange.ranks) < job.world_size:
        return "waiting"
    return "bandwidth" if at_best >= limits.AT_BEST else "exposed"


def _transfer(exchange: ExchangeFacts, moved: float) -> list[Evidence]:
    """How long it takes, and how long at the highest rate that was measured here."""
    transfer = exchange.transfer
    if transfer is None:
        return []
    took_ns = transfer.mean * exchange.step_ns
    rate = moved / max(1e-9, took_ns)
    text = f"transfer takes {ms(took_ns)} of {ms(exchange.step_ns)} per step, {rate:.0f} GB/s"
    if (at_best := exchange.at_best) is not None:
        text += f"; {ms(took_ns * at_best)} at the highest rate measured here"
    return [Evidence(text, "collectives", transfer.mean)]


def _links(window: StepWindow) -> list[Evidence]:
    """What the counters of this GPU's links say; nothing where they are not read."""
    activity = window.activity
    if activity is None or activity.nvlink_rx_mb_s is None or activity.nvlink_tx_mb_s is None:
        return []
    text = f"NVLink carries {activity.nvlink_rx_mb_s / 1e3:.0f} GB/s in and "
    text += f"{activity.nvlink_tx_mb_s / 1e3:.0f} GB/s out"
    if activity.pcie_rx_mb_s is not None and activity.pcie_tx_mb_s is not None:
        pcie = (activity.pcie_rx_mb_s + activity.pcie_tx_mb_s) / 1e3
        text += f"; PCIe {pcie:.1f} GB/s"
    return [Evidence(text, counted_by(activity))]


def _evidence(found: Exposed, exchange: ExchangeFacts, count: float, moved: float) -> Evidence:
    many = "collective" if round(count) == 1 else "collectives"
    each = f"{count:.0f} {many} of {size(moved / max(1.0, count))} per step"
    if found.overlap is not None:
        text = f"{each}; {percent(found.overlap)} of their time is hidden behind the backward"
    else:
        text = f"{each}; how much of that compute hides is not measured"
    return Evidence(text, "collectives", found.share.mean * exchange.step_ns / 1e6, "ms")


def _ddp(exchange: ExchangeFacts) -> DdpTimes | None:
    return next(iter(exchange.ddp[-1].values()), None) if exchange.ddp else None


def _advice(ddp: DdpTimes | None, sub: Sub) -> tuple[str, ...]:
    if sub == "waiting":
        return (
            "watch the ranks of the other hosts: one that is late looks like a slow network here",
            "measure the network alone: nccl-tests' all_reduce_perf over the same hosts",
        )
    if ddp is None:
        return (
            "a larger batch per rank, or gradient accumulation without reduction in between: as "
            "many bytes for more work",
            "keep parameters gathered between forward and backward where memory allows: "
            "fully_shard(..., reshard_after_forward=False); prefetch: set_modules_to_forward_"
            "prefetch",
            "shard within the node and replicate across nodes (a 2-D device mesh)",
        )
    advice = [
        "accumulate gradients over k batches, all but the last under model.no_sync(): a k-th of "
        "the communication",
        "halve the bytes: model.register_comm_hook(None, torch.distributed.algorithms."
        "ddp_comm_hooks.default_hooks.bf16_compress_hook)",
    ]
    if sub == "small-buckets":
        advice.insert(0, "larger buckets: DistributedDataParallel(..., bucket_cap_mb=100)")
    elif (
        sub == "exposed"
        and ddp.buckets <= 2
        and ddp.parameter_bytes > 2 * limits.SMALL_BUCKET_BYTES
    ):
        cap = max(1, ddp.parameter_bytes // 8 // limits.SMALL_BUCKET_BYTES)
        advice.append(
            f"{ddp.buckets} buckets leave little to overlap: bucket_cap_mb={cap}, so that the "
            "first goes out sooner"
        )
    if not ddp.gradient_as_bucket_view:
        advice.append("gradient_as_bucket_view=True: no copy between gradients and buckets")
    return tuple(advice)
