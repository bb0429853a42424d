"""On a CPU: a loop of many small operations, each of which costs its call, however small it is."""

from dataclasses import dataclass, replace
from typing import Final

from ...steps import Step
from ..code_loops import Loop, looped_cells, looped_parts
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import percent, size
from ..scoring import cause, speedup_of
from ..statistics import Share, lesser, product, times
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

OPERATION_NS: Final = 8_000
LEAST_NS: Final = 5_000
MOST_NS: Final = 10_000
"""What an operation costs that has hardly any numbers to compute: its Python, its dispatch, its
node in the graph, and that node's turn in the backward. 6.4 to 10 us in 11 small loops on two cores
(torch 2.13; a batch row by row, cells of 64, a CRF), 2.6 to 4.3 of them in the forward."""
OF_FORWARD: Final = 2.4
"""What such a loop takes with its part of the backward, as a multiple of its forward, of those."""
MOST_OF_FORWARD: Final = 3.8
"""The same at the most: 10 us of which 2.6 are the forward's."""
GRADIENT_B_NS: Final = 40.0
MOST_B_NS: Final = 100.0
LEAST_B_NS: Final = 20.0
"""At which gradients are added up: two are read and one is written for each use of a parameter but
the first. 43 bytes a ns of 4 to 16 MB on one core, 72 to 140 of less, 21 of 64 MB (two cores)."""
LEAST_OF_NET: Final = 1 / 8
"""Of forward and backward: where calls take less the parts are large, and may even be faster than
one call, for they fit into a cache (pointwise operations of 77 us each, 1.25x as fast in parts)."""
MOST_OF_TURN: Final = 40
"""Operations in a turn of such a loop: a GRU's cell has 20, SincNet makes a filter with forty."""
LEAST_TURNS: Final = 8
"""Of a loop that calls no net: fewer turns may each be another thing, as heads and scales of other
shapes are."""


@dataclass(frozen=True, slots=True)
class SmallOperations:
    """Of one step."""

    backwards: float
    count: int
    """Operations that its backwards go through."""
    each_ns: float
    """What one of them takes, forward and backward."""
    net_share: float
    """Of the step, what forward and backward take, 0 to 1."""
    added_bytes: int
    """Of gradients that are added to those of an earlier use of the parameter."""
    share: Share
    """Of the step: what calling and adding take, whatever else is computed."""
    turns: int
    """Of a loop, the most: so often one parameter is used, or one result."""


def small_operations(window: StepWindow) -> SmallOperations | None:
    """None on a GPU, and where no graph was seen. No more than forward and backward take."""
    settings, total = window.settings, spent(window.steps)
    if window.gpu_present or settings is None or not settings.graph_nodes or total.wall_ns <= 0:
        return None
    backwards = sum(row.backwards for row in window.steps) / max(1, total.steps)
    count = settings.graph_nodes * backwards
    step_ns = total.wall_ns / max(1, total.steps)
    net_ns = sum(_net_ns(row, window.sees_loading) for row in window.steps) / max(1, total.steps)
    if not count or not net_ns:
        return None
    added = (settings.graph_added_bytes or 0) * backwards
    each = (
        min(count * ns + 3 * added / rate, net_ns) / step_ns
        for ns, rate in (
            (OPERATION_NS, GRADIENT_B_NS),
            (LEAST_NS, MOST_B_NS),
            (MOST_NS, LEAST_B_NS),
        )
    )
    share = Share(*(min(1.0, one) for one in each))
    return SmallOperations(
        backwards=backwards,
        count=round(count),
        each_ns=net_ns / count,
        net_share=min(1.0, net_ns / step_ns),
        added_bytes=round(added),
        share=share,
        turns=settings.graph_uses or 1,
    )


def _net_ns(row: Step, sees_loading: bool) -> int:
    """Without a loader "forward" is all from an update to the next backward, a rollout as well:
    then the net's own forward is taken to last no longer than its backward."""
    forward_ns = row.forward_ns if sees_loading else min(row.forward_ns, row.backward_ns)
    return forward_ns + row.backward_ns


def small_operations_in_a_loop(window: StepWindow) -> Finding | None:
    """Where the source shows a loop whose turns could be one call, or a loop over LSTM cells, whose
    layer takes all time steps at once: its operations of all turns but one are lost. Within a net
    they may be most of its operations, where turns of a few dozen make up half of the graph, and
    take no more than samples show of the loop; a loop that only makes the batch has none in the
    graph. What the larger ones compute faster comes on top of that, so the forecast is "at least".
    """
    seen = small_operations(window)
    if seen is None:
        return None
    loop = looped_parts(window)
    if loop is None or (not loop.calls_net and seen.turns < LEAST_TURNS):
        loop = lstm_cells(window)
    if loop is None or seen.share.mean < LEAST_OF_NET * seen.net_share:
        return None
    held = product(seen.share, loop.part)
    least = held.mean * seen.share.low / seen.share.mean
    if loop.in_net.mean:
        held = lesser(held, times(loop.in_net, MOST_OF_FORWARD))
    seen_held = times(loop.in_net, OF_FORWARD)
    within = min(seen.share.mean, seen_held.mean)
    if held.mean < within and seen.turns * MOST_OF_TURN >= seen.count / 2:
        held = Share(within, min(seen.share.low, seen_held.low), seen.share.high)
        least = held.low
    lost = 1.0 - 1.0 / seen.turns
    share = times(held, lost)
    if share.mean < CONTRIBUTOR:
        return None
    calls = (
        f"{seen.count:,} operations in a step take {seen.each_ns / 1e3:.0f} us each; the call of "
    )
    calls += f"one takes {LEAST_NS / 1e3:.0f} to {MOST_NS / 1e3:.0f} us, whatever it computes"
    evidence = [Evidence(calls, "hook", float(seen.count))]
    if seen.added_bytes:
        added = f"gradients of {size(seen.added_bytes)} are added to those of an earlier turn"
        evidence.append(Evidence(added, "hook", float(seen.added_bytes), "B"))
    found = cause(
        "launch",
        "small-operations",
        share,
        f"a loop of small operations takes about {percent(share.mean)} of each step",
        tuple(evidence),
        (loop.instead,),
    )
    return replace(found, forecast=at_least(speedup_of(min(least, held.mean) * lost)))


def lstm_cells(window: StepWindow) -> Loop | None:
    """A loop over LSTM's cells. On a CPU a layer of those is one operation, of floats; of GRU and
    RNN it is a loop of its own (1.05 to 1.25x and 1.2 to 1.6x measured for cells, 1.4 to 8.8x for
    LSTM's), and of doubles."""
    settings, cells = window.settings, looped_cells(window)
    if cells is None or settings is None or settings.parameter_dtype != "float32":
        return None
    return cells if cells.cell == "LSTM" else None
