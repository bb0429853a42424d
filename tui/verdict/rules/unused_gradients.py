"""Gradients that nothing uses: of layers that should be frozen and of which only the optimizer does
not know, or of a net that is only to judge another's output."""

from dataclasses import replace
from typing import Final

from ..findings import Evidence, EvidenceSource, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..on_device import on_device
from ..scoring import cause
from ..statistics import Share, share_of, times
from ..step_time import wall_of
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

WEIGHTS_OF_BACKWARD: Final = 0.5
"""Of the backward of a product or a convolution the part that makes the gradient of its weights:
one of two products of the same size. The other one hands the gradient on."""


def unused_gradients(window: StepWindow) -> Finding | None:
    """By the backward's own graph: which of its leaves nothing updates, and which of its operations
    lead to those alone. How long each takes no graph tells: they are taken as equal."""
    settings = window.settings
    if settings is None or not settings.unused_parameters or not settings.graph_parameters:
        return None
    alone = settings.unused_nodes or 0.0
    among = settings.unused_parameters / settings.graph_parameters
    part = alone + (1.0 - alone) * among * WEIGHTS_OF_BACKWARD
    backward, source = _backward(window)
    share = times(backward, part)
    if share.mean < CONTRIBUTOR:
        return None
    unused, every = settings.unused_parameters, settings.graph_parameters
    text = f"{unused} of {every} parameters that the backward makes gradients for are updated by "
    evidence = [Evidence(f"{text}no optimizer", "hook", float(unused))]
    text = f"the backward takes {percent(backward.mean)} of each step"
    if alone:
        text += f", and {percent(alone)} of its operations lead to those alone"
    evidence.append(Evidence(text, source, backward.mean))
    freeze = "requires_grad_(False) on every parameter that the optimizer does not have"
    if alone:
        freeze += ", or torch.no_grad() around the layers before the first that learns"
    found = cause(
        "compute",
        "unused-gradients",
        share,
        f"gradients that nothing uses take about {percent(share.mean)} of each step",
        tuple(evidence),
        (freeze,),
    )
    if found.speedup is None:
        return found
    shares = share.mean, share.low, share.high
    forecast = interval_of("compute", found.speedup, *shares)
    return replace(found, speedup_is="estimate", forecast=forecast)


def _backward(window: StepWindow) -> tuple[Share, EvidenceSource]:
    """Its part of the steps' time, on the GPU's clock where that is read."""
    device = on_device(window)
    if device is not None:
        rows = device.rows
        return share_of([row.backward_ns for row in rows], [row.wall_ns for row in rows]), "event"
    return share_of([row.backward_ns for row in window.steps], list(map(wall_of, window.steps))), (
        "hook"
    )
