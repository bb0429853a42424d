"""What goes from a step when a cause goes, on the host and on the GPU: what a replay leaves out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..allocations import segments_asked
from ..between_phases import of_closures
from ..code_places import (
    copies_to_gpu,
    empties_cache,
    evaluates,
    fetches,
    main_places,
    share_beside_net,
    share_held,
    share_where,
    steps_one_by_one,
)
from ..exposed_wait import given_back, loader_ends
from ..findings import Kind
from ..gpu_clock import copies, queued
from ..idle_ledger import (
    computed_for_gpu,
    evaluated_within,
    idle_ledger,
    keeps_up,
    python_within,
)
from ..on_device import idle_of, on_device
from ..reading_functions import reads_results
from ..stack_samples import FrameShare
from ..thresholds import hysteresis as limits
from ..thresholds.gpu import (
    FILLED_TAKES,
    FORWARD_OF_BACKWARD,
    GRAPH_LEFT,
    GRAPH_LEFT_NS,
    PASS_NS_A_TENSOR,
    SEGMENT_ASKED_NS,
    STEP_GRAPH_NS,
)
from ..unmarked_evaluation import grows_text, what_evaluates
from ..window import StepWindow
from .replay import ISSUING, NET, Removal, StepReplay

_WORKING: Final = (*ISSUING, "other")
_NOT_WORKING: Final = ("data", "checkpoint", "evaluation", "compile")
"""What the host does there is no wait for the GPU either."""


NO_COPY_WAITS: Final = Removal(copies=True)
"""Batches are copied as before, and the host goes on meanwhile."""


def removal_of(kind: Kind, window: StepWindow, record: StepReplay) -> Removal | None:
    """None for what no replay can take away."""
    found = _REMOVALS.get(kind)
    return found(window, record) if found is not None else None


def _input(window: StepWindow, record: StepReplay) -> Removal:
    """Every batch lies ready, and none has to be given back. Of a loop without a loader samples
    show how long it makes them."""
    if window.sees_loading:
        ends, other_ns = loader_ends(window).mean, record.host_ns(("other",))
        left = max(0.0, 1.0 - ends * record.step_ns / other_ns) if other_ns else 1.0
        # A batch is given back between two steps, or behind the fetch, in what counts as forward.
        within = min(given_back(window).mean, max(0.0, ends - other_ns / record.step_ns))
        removed = _without("data").joined(Removal(host={"other": left}))
        return removed.joined(_off_forward(within, record))
    return _off_forward(share_where(main_places(window), fetches), record)


def _host(window: StepWindow, record: StepReplay) -> Removal:
    """Python between the phases, and what samples show of it within; a wait for the GPU there is
    no Python."""
    return Removal(host={"other": 0.0}).joined(_off_forward(python_within(window), record))


def _off_forward(share: float, record: StepReplay) -> Removal:
    """This part of a step goes from what the host does in its forward."""
    forward_ns = record.host_ns(("forward",))
    if not (share and forward_ns):
        return Removal()
    return Removal(host={"forward": max(0.0, 1.0 - share * record.step_ns / forward_ns)})


def _optimizer(window: StepWindow, _: StepReplay) -> Removal:
    """All of it, or what a fused one leaves of a loop over the parameters."""
    looped = any(map(steps_one_by_one, main_places(window)))
    return _without("optimizer", limits.FUSED_LEFT if looped else 0.0)


def _launch(window: StepWindow, record: StepReplay) -> Removal:
    """The net's forward and backward, replayed as a graph. What else the host does in them takes
    what it took: copies, batches that the loop makes itself, Python, emptying the cache; and
    something is left of every launch. No graph of the net holds the optimizer."""
    issued, (kept, within) = record.host_ns(NET), _beside_the_net(window, record)
    other_ns, evaluated = record.host_ns(("other",)), evaluated_within(window)
    between = min(other_ns / record.step_ns, evaluated) if window.sees_loading else 0.0
    asked = _asks_the_net(window) if evaluated else 0.0
    within -= asked * min(within, max(0.0, evaluated - between))
    beside_ns = (kept + within) * record.step_ns
    net_ns = max(0.0, issued - beside_ns)
    left_ns = window.passes * GRAPH_LEFT_NS + GRAPH_LEFT * net_ns + beside_ns
    left = dict.fromkeys(NET, min(1.0, left_ns / issued) if issued else 1.0)
    gone_ns = asked * between * (1.0 - GRAPH_LEFT) * record.step_ns
    return Removal(host={**left, "other": max(0.0, 1.0 - gone_ns / other_ns) if other_ns else 1.0})


def removal_of_computed(window: StepWindow, record: StepReplay) -> Removal:
    """What a traced step computes on the CPU within the phases."""
    return _off_forward(computed_for_gpu(window).mean, record)


def removal_by_step_graph(window: StepWindow, record: StepReplay) -> Removal:
    """Likewise the whole step with its loss and its optimizer, launched at once."""
    issued, beside_ns = record.host_ns(NET), sum(_beside_the_net(window, record)) * record.step_ns
    left = min(1.0, (beside_ns + STEP_GRAPH_NS) / issued) if issued else 1.0
    return Removal(host={**dict.fromkeys(NET, left), "optimizer": 0.0})


def _beside_the_net(window: StepWindow, record: StepReplay) -> tuple[float, float]:
    """What the host does in the net's phases and is not the net's, as parts of a step: what is kept
    however the net is launched, and evaluations and what else samples show there."""
    moved, places, ledger = copies(window), main_places(window), idle_ledger(window)
    computed = 0.0 if ledger is None else ledger.computed
    kept = share_where(places, empties_cache) + python_within(window) + computed
    kept += 0.0 if window.sees_loading else share_where(places, fetches)
    by_link = 0.0
    if moved is not None and moved.by_samples:
        kept += moved.share
    elif moved is not None:
        by_link = moved.share
    kept = min(kept + of_closures(window), _not_the_nets(window, record)) + by_link
    apart = ("other", "evaluation") if window.sees_loading else ("evaluation",)
    beside = record.host_ns(apart) / record.step_ns
    within = evaluated_within(window) + max(0.0, share_beside_net(places) - computed)
    return kept, max(0.0, within - beside)


def _asks_the_net(window: StepWindow) -> float:
    """Of an evaluation that no mark has, the part in which it asks the net, 0 to 1, and waits for
    launches as the training does: a compiled net has a graph for each of its modes. What generates
    or acts asks it for shapes that grow, or for one observation at a time."""
    every = [place for place in main_places(window) if evaluates(place)]
    own = [place for place in every if place.in_net and not grows_text(place)]
    if not own or what_evaluates(window) != "evaluation":
        return 0.0
    return share_held(own) / share_held(every)


def _sync(window: StepWindow, record: StepReplay) -> Removal:
    """The host never waits for the GPU. Lines that copy wait for it too: those are the copies'."""
    moved = copies(window)
    copying = moved is not None and moved.share >= limits.CONTRIBUTOR

    reads = reads_results(window)

    def waits(place: FrameShare) -> bool:
        return reads(place) and not (copying and copies_to_gpu(place))

    return _without_waits(share_where(main_places(window), waits), record)


def _h2d(window: StepWindow, record: StepReplay) -> Removal:
    """No copy that the host sits in, and none that the GPU has to wait for. Where hardly anything
    is queued as a forward begins, it is another line that waits for the GPU."""
    moved = copies(window)
    if moved is None:
        return Removal()
    most = _copying(window, record) if moved.by_samples else 1.0
    taken = min(most, max(moved.on_lines, moved.share))
    waits = queued(window) >= limits.CONTRIBUTOR
    removed = _without_waits(taken, record) if waits else _off_forward(taken, record)
    removed = replace(removed, copies=True)
    worked = record.device_ns(ISSUING)
    if not worked:
        return removed
    # What the counters call idle is all that copies can hold on the GPU's side.
    held = worked + record.device_ns(("other", "wait")) - (1 - idle_of(window)) * record.step_ns
    cut = min(moved.share * record.step_ns, max(0.0, held))
    return removed.joined(Removal(device=dict.fromkeys(ISSUING, max(0.0, 1 - cut / worked))))


def _copying(window: StepWindow, record: StepReplay) -> float:
    """The most of a step that copies can hold on the host, 0 to 1: of the net's phases what is not
    the net's, and what lies between them."""
    beside_ns = record.host_ns(("data", "other", "wait"))
    return min(1.0, _not_the_nets(window, record) + beside_ns / record.step_ns)


def _not_the_nets(window: StepWindow, record: StepReplay) -> float:
    """What the host does in the net's phases and is not the net's, as part of a step, where it
    launches all the time: what the net's forward leaves of its phase. Samples know it to a tenth
    of the step, a backward tells how long its forward takes to a fifth of that. 1 elsewhere."""
    device = on_device(window)
    if device is None or not keeps_up(device):
        return 1.0
    net_ns = FORWARD_OF_BACKWARD * record.host_ns(("backward",))
    return max(0.0, record.host_ns(("forward",)) - net_ns) / record.step_ns


def _allocator(window: StepWindow, record: StepReplay) -> Removal:
    """The lines that empty the cache, and what the host then takes to ask for the same memory
    again."""
    emptying = share_where(main_places(window), empties_cache)
    asked, issued = segments_asked(window) or 0.0, record.host_ns(NET)
    left = max(0.0, 1.0 - asked * SEGMENT_ASKED_NS / issued) if issued else 1.0
    return _without_waits(emptying, record).joined(Removal(host=dict.fromkeys(NET, left)))


def _evaluation(window: StepWindow, record: StepReplay) -> Removal:
    """Marked ones; else what samples show, between the phases first. What is more than the host
    works there it waits for the GPU, and for the kernels of the evaluation. Those of a net that is
    asked within what counts as forward are the forward's on the GPU's clock too, but for the time
    in which its first result waits for the training."""
    seen_ns = evaluated_within(window) * record.step_ns - record.host_ns(("evaluation",))
    if seen_ns <= 0:
        return _without("evaluation")
    asked_ns = seen_ns - record.host_ns(("other",)) - _lag_ns(window)
    forward_ns = record.host_ns(("forward",))
    asked = max(0.0, 1.0 - max(0.0, asked_ns) / forward_ns) if forward_ns else 1.0
    left: dict[str, float] = {}
    for name in ("other", "forward"):
        held_ns = record.host_ns((name,))
        left[name] = max(0.0, 1.0 - seen_ns / held_ns) if held_ns else 1.0
        seen_ns = max(0.0, seen_ns - held_ns)
    waited_ns = record.device_ns(("wait",))
    kernels = max(0.0, 1.0 - seen_ns / waited_ns) if waited_ns else 1.0
    elsewhere = Removal(
        host=left, device={"other": left["other"], "forward": asked, "wait": kernels}
    )
    return _without("evaluation").joined(elsewhere)


def _lag_ns(window: StepWindow) -> float:
    """How far the GPU is behind the host as a step ends: a whole step where that is not known."""
    device = on_device(window)
    if device is None:
        return 0.0
    return device.step_ns if device.lag_ns is None else device.lag_ns


def _without_waits(share: float, record: StepReplay) -> Removal:
    """This part of the host's time removed, its waits for the GPU first."""
    if not share:
        return Removal()
    taken_ns = share * record.step_ns
    host_ns = record.host_ns(_WORKING)
    blocked_ns = max(0.0, record.step_ns - host_ns - record.host_ns(_NOT_WORKING))
    left = 1.0 - max(0.0, taken_ns - blocked_ns) / host_ns if host_ns else 1.0
    return Removal(host=dict.fromkeys(_WORKING, max(0.0, left)), waits=True)


def _without(name: str, left: float = 0.0) -> Removal:
    return Removal(host={name: left}, device={name: left})


_REMOVALS: Final[dict[Kind, Callable[[StepWindow, StepReplay], Removal]]] = {
    "input": _input,
    "host": _host,
    "optimizer": _optimizer,
    "launch": _launch,
    "sync": _sync,
    "h2d": _h2d,
    "allocator": _allocator,
    "checkpoint": lambda _, __: _without("checkpoint"),
    "evaluation": _evaluation,
    "recompile": lambda _, __: _without("compile"),
}


def removal_by_one_call(window: StepWindow, record: StepReplay) -> Removal | None:
    """The net called once for a whole batch, and not for its parts: each of its tensors is used
    once in a pass. None where it is not known how many tensors there are, or how full the kernels
    are now."""
    tensors = None if window.settings is None else window.settings.parameters
    if not tensors:
        return None
    left_ns = window.passes * tensors * PASS_NS_A_TENSOR
    left_ns += sum(_beside_the_net(window, record)) * record.step_ns
    return _in_fuller_kernels(left_ns, window, record)


def removal_by_merging(window: StepWindow, record: StepReplay, times: int) -> Removal | None:
    """So many batches of an update put through the net at once. None where it is not known how full
    the kernels are now."""
    beside_ns = sum(_beside_the_net(window, record)) * record.step_ns
    net_ns = max(0.0, record.host_ns(NET) - beside_ns)
    return _in_fuller_kernels(beside_ns + net_ns / times, window, record)


def _in_fuller_kernels(left_ns: float, window: StepWindow, record: StepReplay) -> Removal | None:
    """The host launches for so long in the net's phases, kernels that fill the multiprocessors."""
    activity, issued = window.activity, record.host_ns(NET)
    if activity is None or not activity.busy or activity.sm is None or not issued:
        return None
    filled = min(1.0, FILLED_TAKES * activity.sm / activity.busy)
    return Removal(
        host=dict.fromkeys(NET, min(1.0, left_ns / issued)),
        device=dict.fromkeys((*NET, "wait"), filled),
    )


def removal_of_kernels(left: float) -> Removal:
    """The net's kernels take this part of their time, 0 to 1."""
    return Removal(device=dict.fromkeys((*NET, "wait"), left))
