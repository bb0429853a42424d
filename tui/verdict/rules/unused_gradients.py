"""Gradients that nothing uses: of layers that should be frozen and of which only the optimizer does
not know, of a net that is only to judge another's output, or of one that only makes the input of
the net that learns."""

from dataclasses import dataclass, replace
from typing import Final

from ...settings import Settings
from ..findings import Evidence, EvidenceSource, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..on_device import on_device, share_of_steps
from ..scoring import cause
from ..statistics import Share, times
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

WEIGHTS_OF_BACKWARD: Final = 0.5
"""Of the backward of a product or a convolution the part that makes the gradient of its weights:
one of two products of the same size. The other one hands the gradient on."""


def unused_gradients(window: StepWindow) -> Finding | None:
    """By the backward's own graph: which of its leaves nothing updates, or whose gradients are
    cleared before anything does, and which of its operations lead to those alone. How long each
    takes no graph tells: they are taken as equal."""
    settings = window.settings
    found = [_never_updated(settings), _cleared(settings)] if settings is not None else []
    reasons = [one for one in found if one is not None]
    backward, source = _backward(window)
    share = times(backward, min(1.0, sum(one.part for one in reasons)))
    if share.mean < CONTRIBUTOR:
        return None
    text = f"the backward takes {percent(backward.mean)} of each step"
    if alone := sum(one.alone for one in reasons):
        text += f", and {percent(alone)} of its operations lead to those alone"
    evidence = [Evidence(one.text, "hook", float(one.parameters)) for one in reasons]
    evidence.append(Evidence(text, source, backward.mean))
    unused = cause(
        "compute",
        "unused-gradients",
        share,
        f"gradients that nothing uses take about {percent(share.mean)} of each step",
        tuple(evidence),
        tuple(one.advice for one in sorted(reasons, key=lambda one: -one.part)),
    )
    if unused.speedup is None:
        return unused
    shares = share.mean, share.low, share.high
    forecast = interval_of("compute", unused.speedup, *shares)
    return replace(unused, speedup_is="estimate", forecast=forecast)


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why gradients are of no use: so large a part of the backward's work, of which a part leads to
    such gradients alone."""

    part: float
    alone: float
    parameters: int
    text: str
    advice: str


def _never_updated(settings: Settings) -> _Reason | None:
    if not settings.unused_parameters or not settings.graph_parameters:
        return None
    unused, every = settings.unused_parameters, settings.graph_parameters
    alone = settings.unused_nodes or 0.0
    text = f"{unused} of {every} parameters that the backward makes gradients for "
    which, why = "that the optimizer does not have", "are updated by no optimizer"
    resting = settings.resting_parameters or 0
    if resting:
        at_zero = "whose learning rate is 0"
        which = at_zero if resting == unused else f"{which}, or {at_zero}"
        why = "have a learning rate of 0" if resting == unused else f"{why}, or {at_zero}"
    freeze = f"requires_grad_(False) on every parameter {which}"
    if resting:
        freeze += ", and True again before it is to learn"
    elif alone:
        freeze += ", or torch.no_grad() around the layers before the first that learns"
    part = alone + (1.0 - alone) * unused / every * WEIGHTS_OF_BACKWARD
    return _Reason(part, alone, unused, text + why, freeze)


def _cleared(settings: Settings) -> _Reason | None:
    """As in a net with an adversary: what one's backward makes for the other's parameters."""
    if not settings.cleared_parameters:
        return None
    alone, half = settings.cleared_nodes or 0.0, settings.cleared_weights or 0.0
    text = f"a backward makes gradients for {settings.cleared_parameters} parameters which are "
    if settings.cleared_for_input:
        text += "cleared and not used: it is the input's gradient that is asked for"
        advice = "loss.backward(inputs=[x]), or torch.autograd.grad(loss, x), for an input x"
    else:
        text += "cleared before their optimizer steps: the backward is another optimizer's"
        advice = "loss.backward(inputs=list(net.parameters())) with what the next step updates; or "
        advice += "detach() what another net made, or requires_grad_(False) on its parameters there"
    part = alone + half * WEIGHTS_OF_BACKWARD
    return _Reason(part, alone, settings.cleared_parameters, text, advice)


def _backward(window: StepWindow) -> tuple[Share, EvidenceSource]:
    """Its part of the steps' time, on the GPU's clock where that is read."""
    source: EvidenceSource = "hook" if on_device(window) is None else "event"
    return share_of_steps(window, lambda row: row.backward_ns), source
