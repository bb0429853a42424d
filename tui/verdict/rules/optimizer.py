"""The optimizer's own share of the step, amortised over accumulated micro-steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...settings import Settings
from ..between_phases import clipped_part
from ..code_places import (
    clips,
    embeds,
    in_optimizer,
    main_places,
    steps_one_by_one,
)
from ..cpu_wait import asleep
from ..findings import Evidence, EvidenceSource, Finding, Forecast
from ..forecast.gain import gain_without
from ..format import ms, percent, size
from ..gpu_clock import unmeasured
from ..loader import loader_floor, loader_floor_sampled
from ..on_device import on_device
from ..pauses import epoch_parts
from ..place_names import by_user_function, file_of, function_of, place_evidence
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import at_most, share_of
from ..step_time import spent, wall_of
from ..thresholds.causes import (
    AS_MUCH,
    DENORMAL_NS,
    DENORMAL_NUMBERS,
    DENSE_PASSES,
    FAST_BYTES_PER_S,
    FUSED_LEFT_ON_CPU,
    FUSED_LEFT_ON_GPU,
    FUSED_LEFT_UNKNOWN,
    GROUPED_BYTES,
    TENSOR_NS,
    USUAL_NS,
)
from ..thresholds.gpu import FEW_TENSORS, LARGE_TENSOR
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..window import RunFacts, StepWindow
from .own_optimizer import by_hand, function_to_spare, own_function, spare_it
from .parameter_groups import alike_groups
from .sparse_table import (
    TAKES_SPARSE,
    TableUsed,
    backward_share,
    spared_by_rows,
    sparse_advice,
    table_used,
    update_ns,
)

# What to do about an optimizer that takes long, by how this run's is set up.

FUSED: Final = "fused=True"
_FUSED: Final = ("Adam", "AdamW", "SGD")
_FUSED_ON_CPU: Final = (*_FUSED, "Adagrad")
"""Those of torch.optim that have a fused form, since torch 2.4 on a CPU as well."""
_FOREACH: Final = (
    *("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"),
)
"""The others that can update their tensors in groups: the default on a GPU, and no gain on a CPU
(0.7 to 2 times the time of one by one, on two cores)."""
_TOGETHER: Final = (*_FUSED, *_FOREACH)

_WITHOUT_FORMS: Final = frozenset(("lbfgs.py", "sparse_adam.py", "_muon.py"))
"""Files of torch.optim whose classes update one tensor after the other, or all as one."""


def for_this_optimizer(window: RunFacts) -> tuple[str, ...]:
    """One kernel for all tensors; fewer rows, where an embedding was seen; fewer steps. Where its
    settings are unknown, the one-word change comes first."""
    settings, together = window.settings, updated_together(window)
    rarely = "accumulate gradients over several batches: fewer optimizer steps"
    rows: tuple[str, ...] = ()
    places = main_places(window)
    is_sparse = settings is not None and settings.optimizer == "SparseAdam"
    if any(map(embeds, places)) and not (is_sparse or any(map(clips, places))):
        rows = ("a large embedding: sparse=True with SparseAdam updates only the rows used",)
    other = (together,) if together else _one_by_one(window)
    groups = alike_groups(window, _TOGETHER)
    merged = () if groups is None else (groups.advice,)
    first = (*merged, *by_hand(window), *spare_it(window), *other)
    if (used := _by_rows(window)) is not None:
        return (sparse_advice(window, used), *first, rarely)
    if settings is None:
        return (*first, rarely, *rows)
    tensors, held = settings.parameters or 0, settings.parameter_bytes or 0
    large = 0 < tensors <= FEW_TENSORS and held >= LARGE_TENSOR * tensors
    if settings.fused:
        first = ("an 8-bit or a sharded optimizer moves fewer bytes",)
        return (*rows, rarely, *first) if large else (rarely, *rows, *first)
    return (*rows, *first, rarely) if large else (*first, rarely, *rows)


def _one_by_one(window: RunFacts) -> tuple[str, ...]:
    """Groups that were asked for on a CPU: each of an update's operations goes through all tensors,
    of which none stays in a cache that they do not fit. A U-Net's RMSprop over 118 MiB, two cores:
    74 ms one by one for 103 in groups (medians of nine, in turns); of its training 1.19 and 1.01x.
    """
    settings = window.settings
    if window.gpu_present or settings is None or not settings.foreach:
        return ()
    held = settings.parameter_bytes or 0
    if held < GROUPED_BYTES:
        return ()
    text = f"{settings.optimizer or 'the optimizer'}(..., foreach=False): in groups each operation "
    return (f"{text}goes through all {size(held)}, which no cache holds",)


def _by_rows(window: RunFacts) -> TableUsed | None:
    """Where sparse gradients give back more than the fused form does: both in the middle of what
    was measured; where the rows used are not known, the table alone against the most. Not where
    gradients are clipped: PyTorch (2.13) has no norm of sparse ones.

    SparseAdam leaves rows without a lookup as they are, which Adam moves on and AdamW decays: on a
    CPU that other training must give more than the one word that trains the same."""
    used = table_used(window)
    if used is None or any(map(clips, main_places(window))):
        return None
    known = used.lookups is not None
    on_gpu = window.gpu_present
    spares = spared_by_rows(window, used)[1] if known or on_gpu else used.spares
    fused = _spared_by_fusing(window, at_most=not known)
    settings = window.settings
    lazily = settings is not None and settings.optimizer not in TAKES_SPARSE
    if known and lazily and not window.gpu_present:
        share = _share_of_step(window)
        if 1 - share * spares > AS_MUCH * (1 - share * fused):
            return None
    return used if spares > fused else None


def _share_of_step(window: RunFacts) -> float:
    """The optimizer's part of the time; all of it where no mark shows it."""
    if not isinstance(window, StepWindow):
        return 1.0
    return sum(row.optimizer_ns for row in window.steps) / max(1, spent(window.steps).wall_ns)


def _spared_by_fusing(window: RunFacts, at_most: bool) -> float:
    """The part of the optimizer's time that its fused form gives back."""
    settings = window.settings
    if settings is None or settings.fused or settings.fusible is False:
        return 0.0
    least, middle, _ = FUSED_LEFT_ON_CPU.get(settings.optimizer or "", FUSED_LEFT_UNKNOWN)
    of_adam = settings.optimizer in ("Adam", "AdamW")
    if of_adam and window.gpu_present and settings.parameter_device != "cpu":
        least, middle, _ = FUSED_LEFT_ON_GPU
    return 1.0 - (least if at_most else middle)


def updated_together(window: RunFacts) -> str | None:
    """ "AdamW(..., fused=True): …", as its class and settings allow; None where it is so by now, or
    its class, or a setting of it, has no such form there."""
    settings = window.settings
    if settings is None:
        return _as_seen(main_places(window), window.gpu_present)
    name = settings.optimizer
    on_gpu = window.gpu_present and settings.parameter_device != "cpu"
    how = _form(name, on_gpu, settings.foreach is False)
    if settings.fused or how is None or (how == FUSED and settings.fusible is False):
        return None
    instead = " without foreach=True" if settings.foreach else ""  # both are an error
    tensors = f"its {settings.parameters or 0} tensors"
    return f"{name or 'the optimizer'}(..., {how}){instead}: {tensors} are updated together"


def _form(name: str | None, on_gpu: bool, one_by_one: bool) -> str | None:
    """The argument that updates tensors together; None where the class has none on that device, or
    the default is so."""
    if name is None or name in (_FUSED if on_gpu else _FUSED_ON_CPU):
        return FUSED
    return "foreach=True" if on_gpu and one_by_one and name in _FOREACH else None


def nothing_faster(window: RunFacts) -> str | None:
    """ "AdamW is fused already": on a CPU no form of torch's would update the same tensors faster,
    and no rows are left out by a sparse table. What is left is its arithmetic, which only fewer
    updates make less, and those are another training. None where something may.

    Of runs on two cores with such an update: a fused AdamW of 24 % of 0.5-ms steps, no change gave
    1.05x; an Adadelta of 27 %, in groups 0.93x."""
    settings = window.settings
    if settings is None or settings.optimizer is None or settings.parameter_device != "cpu":
        return None
    refuses = settings.fusible is False and settings.optimizer in _FUSED_ON_CPU
    known = settings.optimizer in (*_FUSED_ON_CPU, *_FOREACH) and not refuses
    if window.gpu_present or not known or updated_together(window) is not None:
        return None
    if _by_rows(window) is not None or _one_by_one(window):
        return None
    if settings.fused:
        return f"{settings.optimizer} is fused already"
    return f"{settings.optimizer} has no fused form"


def _as_seen(places: Sequence[FrameShare], on_gpu: bool) -> str | None:
    """By the functions in which the main thread was found: torch names them after the form and the
    class; and by their files, which are named after the class."""
    for name in (function_of(place.frame) for place in places):
        if name.startswith("_fused_"):
            return None
        for form in ("_multi_tensor_", "_single_tensor_"):
            kind = name.removeprefix(form)
            if kind == name:
                continue
            known = {one.lower(): one for one in (*_FUSED_ON_CPU, *_FOREACH)}
            how = _form(known.get(kind, kind), on_gpu, form == "_single_tensor_")
            return None if how is None else f"{how}: the tensors are updated together"
    files = {file_of(place.frame) for place in places if in_optimizer(place)} - {"optimizer.py"}
    if files and files <= _WITHOUT_FORMS:
        return None
    return "fused=True, where its class has it: one kernel updates all tensors"


def _denormal(window: StepWindow, call_ns: float) -> str | None:
    """Where an update takes far longer than its arithmetic, and no wait for a core or for another
    thread, or copying of pages after a fork explains it."""
    settings = window.settings
    if window.gpu_present or settings is None or settings.optimizer not in ("Adam", "AdamW"):
        return None
    numbers = (settings.parameter_bytes or 0) // 4
    least, most = DENORMAL_NUMBERS
    waits = (window.host.run_delay or 0.0) + (asleep(window) or 0.0) >= ENTER_SHARE
    waits = waits or epoch_parts(window) is not None
    if waits or settings.fused or not least <= numbers <= most:
        return None
    each_ns = (call_ns - TENSOR_NS * (settings.parameters or 0)) / numbers
    if each_ns < DENORMAL_NS:
        return None
    return (
        f"or torch.set_flush_denormal(True): {each_ns:.0f} ns a number, where {USUAL_NS:.0f} are "
        "usual, are moments that have decayed to denormal numbers"
    )


def _forecast(window: StepWindow, share: float, bound: float) -> Forecast | None:
    """Of sparse updates, by the rows that they leave out; on a CPU of a function that need not be
    called so often, by its samples; of a fused form by what that leaves of the time in `step()`
    itself, for it clips no faster, and clipping is in the `share`: on a CPU, and of Adam on a GPU.
    No more than the `bound` that a replay or the loader is."""
    settings, floor = window.settings, loader_floor_sampled(window)
    floors = (floor.high, floor.mean, floor.low)
    used = _by_rows(window)
    if used is not None:
        most = share * used.spares + backward_share(window)
        spared = [min(most, share * part) for part in spared_by_rows(window, used)]
        low, middle, high = map(speedup_of, spared, floors)
        return Forecast(middle, 1.0 if used.lookups is None else low, high)
    if (called := function_to_spare(window)) is not None and not window.gpu_present:
        return Forecast(min(bound, speedup_of(called.share, floor.mean)), 1.0, bound)
    if (groups := alike_groups(window, _TOGETHER)) is not None:
        if (own := _own_on_gpu(window)) is None:
            return None
        most, middle, least = (min(bound, speedup_of(own * (1.0 - left))) for left in groups.left)
        return Forecast(middle, least, most)
    if settings is None or not updated_together(window):
        return None
    if window.gpu_present:
        return _forecast_on_gpu(window, settings, bound)
    least, middle, most = FUSED_LEFT_ON_CPU.get(settings.optimizer or "", FUSED_LEFT_UNKNOWN)
    own = sum(row.optimizer_ns for row in window.steps) / max(1, spent(window.steps).wall_ns)
    gains = (min(bound, speedup_of(own * (1 - left))) for left in (middle, most, least))
    return Forecast(*gains)


def _forecast_on_gpu(window: StepWindow, settings: Settings, bound: float) -> Forecast | None:
    """Of Adam's groups, whose passes over memory are known: of an update that waits for launches
    too the fused form leaves less."""
    own = _own_on_gpu(window)
    if own is None or settings.optimizer not in ("Adam", "AdamW"):
        return None
    if settings.parameter_device == "cpu" or settings.foreach is False:
        return None
    if any(map(steps_one_by_one, main_places(window))):
        return None
    moves = DENSE_PASSES * (settings.parameter_bytes or 0) / update_ns(window) * 1e9
    most, middle, least = (min(bound, speedup_of(own * (1.0 - left))) for left in FUSED_LEFT_ON_GPU)
    all_of_it = min(bound, speedup_of(own))
    return Forecast(middle, least, most if moves >= FAST_BYTES_PER_S else all_of_it)


def _own_on_gpu(window: StepWindow) -> float | None:
    """The part of the time in `step()` itself on the GPU's clock; None where that is not read."""
    device = on_device(window)
    if device is None:
        return None
    updating_ns = sum(row.optimizer_ns for row in device.rows)
    own = updating_ns / max(1, sum(row.wall_ns for row in device.rows))
    return min(own, _own_part(window)) * unmeasured(window).left


def _own_part(window: StepWindow) -> float:
    """The part of this rank's time in which it can have worked at all: sharded optimizers exchange
    parameters within `step()`, and gradients may arrive no earlier. Nothing where that part is
    not known."""
    if window.world_size < 2:
        return 1.0
    return 0.0 if window.collectives is None else 1.0 - window.collectives.share


def optimizer(window: StepWindow) -> Finding | None:
    """Time in `optimizer.step()`, and of clipping before it. A step with 8 backwards has one of
    them, so the ratio of sums is the amortised share. On the GPU's clock where that is read."""
    rows, clipped = window.steps, clipped_part(window).mean
    share = share_of(
        [row.optimizer_ns + round(clipped * row.other_ns) for row in rows],
        [wall_of(row) for row in rows],
    )
    device = on_device(window)
    if device is not None:
        measured = device.rows
        share = share_of(
            [row.optimizer_ns + round(clipped * row.other_ns) for row in measured],
            [row.wall_ns for row in measured],
        )
        share = at_most(share, _own_part(window))
    if share.mean < CONTRIBUTOR:
        return None
    total = spent(rows)
    calls = max(1, sum(row.optimizer_steps for row in rows))
    step_ns = total.wall_ns / max(1, total.steps)
    part_ns = share.mean * step_ns
    each_ns = part_ns * total.steps / calls
    source: EvidenceSource = "hook" if device is None else "event"
    evidence = [
        Evidence(f"{ms(part_ns)} of {ms(step_ns)} per step", source, part_ns / 1e6, "ms"),
        Evidence(f"{ms(each_ns)} per call of step()", source, each_ns / 1e6, "ms"),
    ]
    if clipped:
        cut = [place for place in main_places(window) if clips(place)]
        evidence[1:] = [place_evidence(by_user_function(cut)[0], "main-thread")]
    looped = [place for place in main_places(window) if steps_one_by_one(place)]
    evidence += [place_evidence(place, "main-thread") for place in looped[:1]]
    if (own := own_function(window)) is not None:
        evidence.append(place_evidence(own, "main-thread"))
    headline = f"the optimizer takes {percent(share.mean)} of each step"
    no_faster = nothing_faster(window)
    if no_faster is not None:
        headline += f": {no_faster}"
    advice = for_this_optimizer(window)
    if (flush := _denormal(window, each_ns)) is not None:
        advice = (*advice[:1], flush, *advice[1:])
    found = cause(
        "optimizer",
        None,
        share,
        headline,
        tuple(evidence),
        advice,
        loader_floor(window),
        gain_without("optimizer", window, at_most=not looped or None),
    )
    if no_faster is not None:
        # Less than what makes a verdict: no fix of this training's is known to give anything back.
        return replace(found, forecast=Forecast(1.0, 1.0, found.speedup or 1.0))
    forecast = _forecast(window, share.mean, found.speedup or 1.0)
    if forecast is not None and forecast.low > 1.0 and _by_rows(window) is not None:
        # What a sparse table gives back is known, and not some part of the bound.
        found = replace(found, speedup=forecast.speedup, speedup_is="estimate")
    return replace(found, forecast=forecast)
