"""On a CPU: a linear layer that is called again and again for a few rows, though no call waits for
another: each reads its weight anew, forward and backward, and adds a gradient as large as that."""

from dataclasses import replace
from typing import Final

from ...settings import RepeatedLayer
from ..code_loops import looped_cells, looped_parts
from ..code_places import forward_of_net, main_places
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import size
from ..place_names import own_frame
from ..scoring import cause, speedup_of
from ..statistics import Share
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

MOST_ROWS: Final = 32
"""Of a call: with 64 its arithmetic takes as long as its weight (1.1 to 1.3x for one of all)."""
LEAST_BYTES: Final = 1_000_000
"""Of a weight: what calls of smaller ones take is their operations."""
IN_CACHE_BYTES: Final = 8_000_000
IN_CACHE_B_NS: Final = (5.0, 8.0, 3.7)
RATES_B_NS: Final = (2.5, 4.0, 1.2)
"""Bytes of the weight to a ns that one call of all saves for each further call: the mean, the most
and the least. Layers of 256 to 1,000 (3.7 to 4.2), 2,500 (6.7 and 7.5; 23 for 32 rows), 5,000 (4.3
to 6.3) and 20,000 (2.0 to 3.5) with their cross entropy, 30 calls of 4, 8 and 32 rows on two cores;
on one beside other processes 1.2 to 5.1."""
FLOAT_BYTES: Final = 4
LINEAR: Final = ("Linear.forward (torch/nn/modules/linear.py", "linear (torch/nn/functional.py")


def repeated_layer(window: StepWindow) -> Finding | None:
    """By the graph of the backward, in which no call of the layer leads to another, and by the
    source, in which no loop around it chooses what comes next. What calls cost beside their weight
    comes on top of that, so the forecast is "at least"."""
    settings = window.settings
    if window.gpu_present or settings is None:
        return None
    layer = settings.repeated_layer
    if layer is None or layer.rows > MOST_ROWS or settings.parameter_dtype != "float32":
        return None
    inside = forward_of_net(window)
    if not inside or any(place.chooses for place in inside) or looped_cells(window) is not None:
        return None
    share = _share(window, layer)
    if share is None or share.mean < CONTRIBUTOR:
        return None
    what = f"a layer of {layer.inputs:,} to {layer.outputs:,}"
    headline = f"{what} is called {layer.calls} times in a step, for {layer.rows} rows each"
    weight = f"each call reads its weight, {size(_bytes(layer))}, and adds a gradient as large"
    evidence = (
        Evidence("no call waits for what another makes, by the backward's graph", "hook"),
        Evidence(weight, "hook", float(_bytes(layer)), "B"),
    )
    found = cause("launch", "repeated-layer", share, headline, evidence, (_instead(window),))
    return replace(found, forecast=at_least(speedup_of(share.low)))


def _instead(window: StepWindow) -> str:
    """One call of the whole net, where its source shows that the loop goes over parts of a batch;
    else where the layer is, if all that is called of linear layers is there."""
    loop = looped_parts(window)
    if loop is not None and loop.calls_net:
        return loop.instead
    linear = [place for place in main_places(window) if place.frame.startswith(LINEAR)]
    places = {own_frame(place) for place in linear}
    where = f": {places.pop()}" if len(places) == 1 else ""
    return f"call it once for all, before the loop if it knows its inputs, or behind it{where}"


def _bytes(layer: RepeatedLayer) -> int:
    return FLOAT_BYTES * layer.inputs * layer.outputs


def _share(window: StepWindow, layer: RepeatedLayer) -> Share | None:
    """Of a step; no more than forward and backward take."""
    weight, total = _bytes(layer), spent(window.steps)
    if weight < LEAST_BYTES or total.wall_ns <= 0:
        return None
    net_ns = sum(row.forward_ns + row.backward_ns for row in window.steps)
    rates = IN_CACHE_B_NS if weight < IN_CACHE_BYTES else RATES_B_NS
    # Of several backwards of a step it was seen in one.
    saved = (weight * (layer.calls - 1) * total.steps / rate for rate in rates)
    mean, low, high = (min(1.0, min(ns, net_ns) / total.wall_ns) for ns in saved)
    return Share(mean, low, high)
