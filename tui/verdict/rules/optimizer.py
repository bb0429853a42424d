"""The optimizer's own share of the step, amortised over accumulated micro-steps."""

from collections.abc import Collection
from typing import Final

from ..code_places import function_of, main_places, place_evidence, steps_one_by_one
from ..findings import Evidence, EvidenceSource, Finding
from ..forecast.gain import gain_without
from ..format import ms, percent
from ..gpu_clock import on_device
from ..loader import loader_floor
from ..scoring import cause
from ..statistics import share_of
from ..step_time import spent, wall_of
from ..thresholds.gpu import FEW_TENSORS, LARGE_TENSOR
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import RunFacts, StepWindow

# What to do about an optimizer that takes long, by how this run's is set up.

_FUSED: Final = ("Adam", "AdamW", "SGD", "Adagrad")
"""Those of torch.optim that have a fused form."""
_FOREACH: Final = (
    *("Adadelta", "Adafactor", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"),
)
"""The others that can update their tensors in groups."""


def for_this_optimizer(window: RunFacts) -> tuple[str, ...]:
    """One kernel for all tensors; fewer rows, where few tensors are most of it; fewer steps. Where
    its settings are unknown, the one-word change comes first."""
    settings, together = window.settings, updated_together(window)
    rarely = "accumulate gradients over several batches: fewer optimizer steps"
    rows = "a large embedding: sparse=True with SparseAdam updates only the rows used"
    first = (together,) if together else ()
    if settings is None:
        return (*first, rarely, rows)
    tensors, held = settings.parameters or 0, settings.parameter_bytes or 0
    large = 0 < tensors <= FEW_TENSORS and held >= LARGE_TENSOR * tensors
    if settings.fused:
        first = ("an 8-bit or a sharded optimizer moves fewer bytes",)
        return (rows, rarely, *first) if large else (rarely, rows, *first)
    return (rows, rarely, *first) if large else (*first, rarely, rows)


def updated_together(window: RunFacts) -> str | None:
    """ "AdamW(..., fused=True): …", as its class and settings allow; None where it is so by now, or
    its class has no such form."""
    settings = window.settings
    if settings is None:
        return _as_seen({function_of(place.frame) for place in main_places(window)})
    name = settings.optimizer
    grouped = settings.foreach is not False and window.gpu_present  # there it is the default
    if settings.fused or (name in _FOREACH and grouped):
        return None
    if name is not None and name not in (*_FUSED, *_FOREACH):
        return None
    how = "foreach=True" if name in _FOREACH else "fused=True"
    tensors = f"its {settings.parameters or 0} tensors"
    return f"{name or 'the optimizer'}(..., {how}): {tensors} are updated together"


def _as_seen(functions: Collection[str]) -> str | None:
    """By the functions in which the main thread was found: torch names them after the form."""
    if any(name.startswith("_fused_") for name in functions):
        return None
    if any(name.startswith("_multi_tensor_") for name in functions):
        return "fused=True: one kernel updates all tensors"
    return "fused=True, or foreach=True: the tensors are updated together"


def optimizer(window: StepWindow) -> Finding | None:
    """Time in `optimizer.step()`. A step with 8 backwards has one of them, so the
    ratio of sums is the amortised share. On the GPU's clock where that is read."""
    rows = window.steps
    share = share_of([row.optimizer_ns for row in rows], [wall_of(row) for row in rows])
    device = on_device(window)
    if device is not None:
        measured = device.rows
        share = share_of([row.optimizer_ns for row in measured], [row.wall_ns for row in measured])
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
    looped = [place for place in main_places(window) if steps_one_by_one(place)]
    evidence += [place_evidence(place, "main-thread") for place in looped[:1]]
    headline = f"the optimizer takes {percent(share.mean)} of each step"
    return cause(
        "optimizer",
        None,
        share,
        headline,
        tuple(evidence),
        for_this_optimizer(window),
        loader_floor(window),
        gain_without("optimizer", window, at_most=not looped),
    )
