"""With a GPU: nothing on the host holds the run back, so the GPU does."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..attention_parts import attention_from_parts
from ..busy_parts import uses_tensor_cores
from ..code_loops import called_in_parts, looped_cells
from ..code_places import (
    ATTENTION_CALL,
    main_places,
    multiplies,
    recurs,
)
from ..findings import Evidence, Finding, Forecast
from ..forecast.gain import Gain, Replayed, gain_of_kernels, replayed
from ..forecast.measured import host_alone, on_tensor_cores
from ..forecast.replay import ISSUING, NET
from ..format import ms, percent, times
from ..gpu_activity import GpuActivity
from ..idle_ledger import idle_ledger
from ..memory.trends import batch_room, larger_batch, to_eights
from ..on_device import OnDevice, counted_by, on_device
from ..place_names import call_at
from ..scoring import cause, speedup_of, state
from ..statistics import Share, without_rows
from ..step_time import issued_of, spent
from ..thresholds import gpu as limits
from ..thresholds.hysteresis import ENTER_SHARE, MOST_EVIDENCE
from ..traced_places import FUSED, castable, costliest, place_of_most, shown, traced
from ..window import StepWindow
from .gpu_filling import KINDS_OF_WORK, cell_by_cell, part_by_part
from .gpu_work import (
    BF16_LINE,
    HALF,
    TF32_LINE,
    Work,
    bandwidth,
    beside_update,
    half_type,
    half_type_gives,
    halved,
    many_convolve,
    precision,
    products_beside_update,
    products_seen,
    saturated,
    work_of,
)

KERNELS: Final = "gpuwatch profile PID (p on the screen) names the kernels that take its time"
LOOK: Final = "whether it must be computed in each step, for all of it, is what to look at first"
ABOUT_ITS_OWN_KERNELS: Final = ("saturated", "underfilled", "parts")
"""Subs that an idle unit shows, or the lack of any other cause: a collective looks the same."""
MEASURE_COLLECTIVES: Final = (
    "collectives are measured by PyTorch's flight recorder: on by default since torch 2.11, before "
    "that TORCH_FR_BUFFER_SIZE=2000 (2.8 to 2.10) or TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
)


def may_wait(window: StepWindow) -> bool:
    """In a job of several ranks: collectives hold a part of this rank's time that matters, or
    nobody knows how much. NCCL's kernels keep the GPU busy and hardly a multiprocessor, whether
    they move data or wait for a late rank."""
    if window.world_size < 2:
        return False
    return window.collectives is None or window.collectives.share >= ENTER_SHARE


def with_collectives(window: StepWindow, work: Work) -> Finding:
    """What can be claimed of a busy GPU of such a rank: nothing about its own kernels."""
    known, others = window.collectives, window.world_size - 1
    evidence = work.evidence()
    if known is None:
        headline = "the GPU is busy: with its own kernels or in collectives is not known"
        return state("compute", None, "info", headline, evidence, (MEASURE_COLLECTIVES,))
    headline = f"the GPU is busy, {percent(known.share)} of the time in collectives"
    text = f"it waits for {'another rank' if others == 1 else 'other ranks'} "
    text += f"{percent(known.waiting)} of the time; {percent(known.transfer)} is transfer"
    found = Evidence(text, "collectives", known.share)
    return state("compute", None, "info", headline, (found, *evidence))


def for_this_run(found: Finding, window: StepWindow) -> tuple[str, ...]:
    """The finding's advice, made concrete where the window knows more than the counters."""
    if found.sub == "underfilled":
        larger = larger_batch(window, "each kernel then fills more of the GPU")
        return (larger, *found.advice[1:])
    if found.sub == "misaligned":
        size = window.loaders[0].batch_size if window.loaders else None
        if size is not None and size % 8:
            return (*found.advice, f"batch_size {size} → {to_eights(size)}, a multiple of 8")
    if found.kind == "memory-bandwidth":
        attention = attention_from_parts(main_places(window))
        if attention is not None:
            fused = "F.scaled_dot_product_attention does it in one kernel, without the scores"
            return (f"{call_at(attention, ATTENTION_CALL)}: {fused}", *found.advice)
    return found.advice


def _with_room(found: Finding, window: StepWindow) -> Finding:
    """A batch `n` times as large gives `n` times the samples a second at the most. Where the memory
    has no room for one, or that is not known, nothing is sure to come of it."""
    if found.sub != "underfilled" or found.forecast is None:
        return found
    room = batch_room(window)
    fits = 1 if room is None else room.times_larger
    if found.forecast.speedup < fits:
        return found
    most = found.speedup or 1.0
    return replace(found, forecast=None, speedup=most if fits < 2 else min(most, float(fits)))


@lru_cache(maxsize=4)
def _work(window: StepWindow) -> Work | None:
    """Worked out once a window: several rules ask."""
    ledger = idle_ledger(window)
    paused = 0.0 if ledger is None else min(0.5, ledger.shares["pauses"])
    known = replayed(window)
    host = 0.0 if known is None else min(known.with_kernels(0.0), host_alone(window))
    products, parts = products_seen(window), called_in_parts(window)
    found = work_of(window.activity, window.settings, products, paused, host, _replans(window))
    if found is None:
        return None
    issuing = 0.0 if known is None else known.record.host_ns(NET) / known.record.step_ns
    found = replace(
        found,
        recurs=_recurs(window),
        updates=_updates(known),
        issuing=min(host, issuing),
        castable=castable(window),
    )
    if parts is None or not parts.holds_most:
        return found
    return replace(found, one_call=parts.instead)


def _updates(known: Replayed | None) -> float:
    """Of the GPU's work the part of the update, 0 to 1; 0 where that is not known."""
    if known is None:
        return 0.0
    every = known.record.device_ns((*ISSUING, "other", "wait"))
    return known.record.device_ns(("optimizer",)) / every if every else 0.0


def _replans(window: StepWindow) -> bool:
    """A transformer of Hugging Face on batches that differ in length: on H200s bf16 made two of
    them slower (0.53x, 0.73x) and tf32 faster (1.4x, 2.2x); without cuDNN's attention bf16 gave one
    of them 2.8x. One of one length gained 3.4x by bf16.
    """
    if not any("(transformers/" in place.frame for place in main_places(window)):
        return False
    forwards = sorted(row.forward_ns / row.count for row in window.gpu_steps if row.forward_ns)
    if len(forwards) < limits.LEAST_GPU_STEPS:
        return False
    low, middle, high = (forwards[len(forwards) * part // 4] for part in (1, 2, 3))
    return high - low >= limits.VARIES * middle


def _recurs(window: StepWindow) -> bool:
    return any(map(recurs, main_places(window)))


def in_fp32(window: StepWindow) -> Finding | None:
    """`precision`, and `half_type`, as a cause among others: a checkpoint now and then is none of
    its time."""
    judged = _as_cause(window, precision) or _as_cause(window, half_type)
    return judged or half_precision(window) or single_precision(window)


def half_precision(window: StepWindow) -> Finding | None:
    """Products in tf32 and activations in fp32, on a GPU that has other things to wait for as well:
    bf16 halves the time of the one and the bytes of the other. Parameters in fp32 without autocast
    that keep tensor cores busy are in tf32, whatever the settings say of products alone. Not where
    the GPU waits for launches: autocast adds to them (0.9x in two such runs); nor where it is the
    limit anyway: how much faster the host could be is not known then."""
    seen, settings, ledger = window.activity, window.settings, idle_ledger(window)
    if seen is None or not seen.busy or seen.tensor is None or seen.dram is None:
        return None
    if seen.busy >= 100 * limits.GPU_BUSY:
        return None
    if settings is None or settings.autocast != "" or ledger is None:
        return None
    if settings.parameter_dtype != "float32" or ledger.dry >= ENTER_SHARE:
        return None
    tensor, dram = min(1.0, seen.tensor / seen.busy), min(1.0, seen.dram / seen.busy)
    if tensor < limits.TENSOR_ABSENT:
        return None
    if tensor < limits.TENSOR_HEALTHY and _recurs(window):
        return None
    fp32 = min(1.0, (seen.fp32 or 0.0) / seen.busy)
    of_net = beside_update(tensor, dram, _updates(replayed(window)))
    left = (1.0 - halved(*of_net)) / half_type_gives(tensor, fp32)
    gain = _gain_beside_waits(window, left) if left < 1.0 else None
    if gain is None:
        return None
    products = percent(min(1.0, tensor / limits.TENSOR_FULL) * seen.busy / 100)
    return _beside_waits(
        seen,
        gain,
        f"matrix products run in tf32, about {products} of the time, and the rest in fp32",
        Evidence(
            f"of that, its tensor cores {percent(tensor)}, its memory {percent(dram)}",
            counted_by(seen),
            tensor,
        ),
        (f"bf16, about {times(gain.speedup)}: {HALF}",),
    )


def single_precision(window: StepWindow) -> Finding | None:
    """Products in fp32 on a GPU that has other things to wait for as well, which are on the way of
    each step where the host waits for their result: a NeRF whose loss is read in each step kept an
    H200 busy 73 % of the time, and tf32 gave 1.48x, bf16 1.73x. tf32 comes first: it adds no
    launches. Only where samples show that most products are of matrices: convolutions run in tf32
    unless somebody forbids it, or channel by channel, for which there is none."""
    seen, settings, ledger = window.activity, window.settings, idle_ledger(window)
    if seen is None or settings is None or ledger is None or _work(window) is not None:
        return None
    if not seen.busy or None in (seen.sm, seen.tensor, seen.fp32, seen.dram):
        return None
    products = [place for place in main_places(window) if multiplies(place)]
    if uses_tensor_cores(settings) or not products:
        return None
    if many_convolve(products) or castable(window) < ENTER_SHARE:
        return None
    counters = (seen.sm or 0.0, seen.tensor or 0.0, seen.fp32 or 0.0, seen.dram or 0.0)
    sm, tensor, fp32, dram = (min(1.0, each / seen.busy) for each in counters)
    if tensor >= limits.TENSOR_ABSENT or fp32 < limits.FP32_HEAVY:
        return None
    updates = _updates(replayed(window))
    of_net = products_beside_update(fp32, dram, sm, updates)
    gain, bf16 = (
        _gain_beside_waits(window, on_tensor_cores(*of_net, ratio, bytes_left))
        for ratio, bytes_left in ((limits.TF32_RATIO, 1.0), (limits.BF16_RATIO, 0.5))
    )
    if gain is None:
        return None
    advice = [f"tf32, one line: {TF32_LINE}, about {times(gain.speedup)}"]
    if bf16 is not None and ledger.dry < ENTER_SHARE:
        advice.append(f"or bf16: {BF16_LINE}, about {times(bf16.speedup)}")
    held = percent(min(1.0, fp32 / limits.FP32_FULL) * seen.busy / 100)
    return _beside_waits(
        seen,
        gain,
        f"matrix products run in fp32: about {held} of the time",
        Evidence(
            f"of that, tensor cores {percent(tensor)}, fp32 units {percent(fp32)}, "
            f"memory {percent(dram)}",
            counted_by(seen),
            fp32,
        ),
        tuple(advice),
    )


def _gain_beside_waits(window: StepWindow, left: float) -> Gain | None:
    """Of a GPU that is not the limit all the time and whose kernels take this part of their time;
    None where that is no cause, or only a bound."""
    gain = gain_of_kernels(window, left)
    if gain is None or gain.speedup_is == "bound" or gain.speedup < speedup_of(ENTER_SHARE):
        return None
    return gain


def _beside_waits(
    seen: GpuActivity, gain: Gain, headline: str, units: Evidence, advice: tuple[str, ...]
) -> Finding:
    busy = seen.busy or 0.0
    text = f"the GPU is busy {busy:.0f}% of the time"
    evidence = (Evidence(text, counted_by(seen), busy, "%"), units)
    share = without_rows(1.0 - 1.0 / gain.speedup)
    return cause("compute", "precision", share, headline, evidence, advice, gain=gain)


def by_parts(window: StepWindow) -> Finding | None:
    """`part_by_part` likewise, where launches do not have the same advice."""
    ledger = idle_ledger(window)
    if ledger is None or ledger.dry >= ENTER_SHARE or may_wait(window):
        return None
    return _as_cause(window, part_by_part)


def of_memory(window: StepWindow) -> Finding | None:
    """`bandwidth` likewise; what fusing gives by the bytes of a traced step, where there is one."""
    found, seen = _as_cause(window, bandwidth), traced(window)
    if found is None or seen is None:
        return found
    most = max(seen.functions, key=lambda one: one.fusible_us - one.fused_us, default=None)
    if most is None:
        return found
    saved = sum(one.fusible_us - one.fused_us for one in seen.functions) / seen.us
    text = (
        f"pointwise operations, sums and copies that one kernel could do take {percent(saved)} of "
    )
    text += f"a traced step more than that, most in {shown(most.place)}"
    share = Share(*(part * saved for part in FUSED))
    if share.mean < ENTER_SHARE:
        return None
    evidence = (Evidence(text, "event", saved), *found.evidence)[:MOST_EVIDENCE]
    return replace(
        found,
        evidence=evidence,
        share=share.mean,
        share_low=share.low,
        share_high=share.high,
        speedup=speedup_of(share.mean),
        forecast=Forecast(*(speedup_of(each) for each in (share.mean, share.low, share.high))),
    )


def _as_cause(window: StepWindow, judge: Callable[[Work], Finding | None]) -> Finding | None:
    work = _work(window)
    found = None if work is None or saturated(work) is not None else judge(work)
    if found is None or (found.share or 0.0) < ENTER_SHARE:
        return None
    share = without_rows(found.share or 0.0)
    evidence = (*found.evidence, *_lag(on_device(window)))[:MOST_EVIDENCE]
    known = replace(found, share_low=share.low, share_high=share.high, evidence=evidence)
    return _with_room(replace(known, advice=for_this_run(found, window)), window)


def compute(window: StepWindow) -> Finding | None:
    """The GPU is the limit; on the host's clock alone, it or launching to it. One that idles is not
    (`idle_gpu`).

    The sub is what the counters show it busy with; None without them.
    """
    if not window.gpu_present:
        return None
    device = on_device(window)
    work = _work(window)
    looped, cells = looped_cells(window), None
    if looped is not None and looped.holds_most:
        cells = f"{looped.instead}, by kernels that cuDNN has for it"
    if work is not None:
        found = None if cells is None else cell_by_cell(work, cells)
        if found is not None:
            return replace(found, evidence=(*found.evidence, *_lag(device))[:MOST_EVIDENCE])
        for judge in KINDS_OF_WORK:
            if (found := judge(work)) is not None:
                if found.sub in ABOUT_ITS_OWN_KERNELS and may_wait(window):
                    return with_collectives(window, work)
                evidence = (*found.evidence, *_lag(device))[:MOST_EVIDENCE]
                advice = for_this_run(found, window)
                return _with_room(replace(found, evidence=evidence, advice=advice), window)
    evidence = (*place_of_most(window), *_lag(device), *_busy(window.activity))
    least = percent(ENTER_SHARE)
    if device is None or device.caught_up is None or _starved(device, window.activity):
        headline = f"no host cause above {least}: the GPU or kernel launches are the limit"
        return state("compute", None, "info", headline, (_issued(window), *evidence))
    which = "the GPU or its collectives are" if may_wait(window) else "the GPU is"
    headline = f"{which} the limit: nothing else takes {least} of a step"
    most = costliest(window)
    look = () if most is None or cells else (f"{shown(most.place)} takes most of it: {LOOK}",)
    return state("compute", None, "info", headline, evidence, (*look, cells or KERNELS))


def _starved(device: OnDevice, activity: GpuActivity | None) -> bool:
    """The GPU keeps up with the host, and its utilisation is unknown."""
    unknown = activity is None or activity.busy is None
    return unknown and (device.caught_up or 0.0) >= limits.CAUGHT_UP_STEPS


def _issued(window: StepWindow) -> Evidence:
    rows = window.steps
    wall = max(1, spent(rows).wall_ns)
    part = min(1.0, sum(map(issued_of, rows)) / wall)
    text = f"{percent(part)} of the time is spent issuing forward, backward and optimizer"
    return Evidence(text, "hook", part)


def _lag(device: OnDevice | None) -> tuple[Evidence, ...]:
    if device is None or device.lag_ns is None or device.abstains:
        return ()
    text = f"the GPU runs {ms(device.lag_ns)} behind the host at the end of a step"
    found = [Evidence(text, "event", device.lag_ns / 1e6, "ms")]
    if device.hidden_ns >= limits.HIDDEN_WORTH * device.step_ns:
        text = f"{ms(device.hidden_ns)} of data wait per step is hidden behind its work"
        found.append(Evidence(text, "event", device.hidden_ns / 1e6, "ms"))
    return tuple(found)


def _busy(activity: GpuActivity | None) -> tuple[Evidence, ...]:
    if activity is None or activity.busy is None:
        return ()
    source = counted_by(activity)
    found = [Evidence(f"GPU busy {activity.busy:.0f}% of the time", source, activity.busy, "%")]
    if activity.tensor is not None:
        text = f"its tensor cores {activity.tensor:.0f}%"
        if activity.dram is not None:
            text += f", its memory {activity.dram:.0f}%"
        found.append(Evidence(text, source, activity.tensor, "%"))
    return tuple(found)
