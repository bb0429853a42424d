"""The GPU waits for the host to launch its kernels."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Final

from ...steps import GpuStep
from ..between_phases import of_closures
from ..code_loops import called_in_parts, looped_cells
from ..code_places import (
    LAUNCHING,
    SYNC_CALL,
    copies_to_gpu,
    is_users,
    main_places,
    recurs,
    replays_graph,
    share_held,
    share_seen,
    waits_for_gpu,
    within,
)
from ..cpu_wait import Starved, core_wait_evidence, remedies
from ..cpu_wait import starved as short_of_cores
from ..findings import Evidence, Finding, Forecast
from ..forecast.gain import (
    gain_of_merging,
    gain_of_one_call,
    gain_of_step_graph,
    gain_without,
    gain_without_both,
)
from ..forecast.interval import at_least, forecast_of, interval_of
from ..forecast.measured import moving
from ..format import ms, percent, times
from ..frameworks import WITH_LOOPS
from ..gpu_activity import GpuActivity
from ..idle_ledger import idle_ledger, keeps_up, starved
from ..loader import loader_floor, training_loader
from ..memory.trends import larger_batch, merging
from ..on_device import OnDevice, counted_by, on_device
from ..place_names import by_user_function, call_at, function_of, own_frame
from ..scoring import cause, speedup_of
from ..statistics import Share, without_rows
from ..step_time import issued_of
from ..thresholds import causes as limits
from ..thresholds.gpu import LOOP_SHARE, STEP_GRAPH_LEAST, STEP_GRAPH_WITHIN, STEP_GRAPH_WORTH
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..window import StepWindow
from .attention import planned_anew
from .debugging import ANOMALY_OFF
from .optimizer import updated_together
from .recompile import of_sizes, recompile

GRAPH: Final = (
    'fewer, larger kernels: torch.compile(model, mode="reduce-overhead"), or a CUDA graph of the '
    "step"
)
# One compilation for all sizes, dynamic=True, launches kernel after kernel: 0.81x, 1.15x, 1.3x of
# an LSTM, a BERT and a GCN whose steps took 3 to 15 times as long as their kernels on an H100.
GRAPHS_OF_SIZES: Final = (
    "fewer, larger kernels: pad batches, which differ in size, to a few sizes; then "
    'torch.compile(model, mode="reduce-overhead") makes a CUDA graph for each of them'
)


CAPTURABLE: Final = (
    *("Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
    *("Adadelta", "ASGD", "RMSprop", "Rprop"),
)
"""Optimizers of torch.optim that keep their count of steps on the GPU when asked to: without it no
graph holds them. SGD counts none, nor do updates by hand."""
HALF_AS_MANY_MORE: Final = 1.5


def cpu_starved(window: StepWindow, bubble: Share) -> Finding | None:
    """Where waiting for a core that others have explains half of the `bubble` in which the GPU
    waits for launches: then cores are the cure, not fewer kernels."""
    lack = short_of_cores(window)
    if lack is None or its_own_threads(window, lack):
        return None
    part = min(lack.share, bubble.mean)
    if part < max(ENTER_SHARE, limits.STARVED_EXPLAINS * bubble.mean):
        return None
    idle = f"the GPU waits for the next kernel {percent(bubble.mean)} of each step"
    return cause(
        "launch",
        "cpu-starved",
        without_rows(part),
        f"the thread that launches kernels waits for a core {percent(lack.share)} of the time",
        (*core_wait_evidence(window, lack), Evidence(idle, "event", bubble.mean)),
        remedies(window, lack),
        loader_floor(window),
    )


def its_own_threads(window: StepWindow, lack: Starved) -> bool:
    """The process's own threads have the cores, as OpenMP's that spin between two products: then
    fewer launches need a core for less time as well, and give more than the cores do."""
    used, beside = (window.host.main_cpu_percent or 0.0) / 100, window.host.beside_cores or 0.0
    if lack.by_others is None or used - (window.host.thread_cpu or 1.0) < beside / 2:
        return False
    return lack.by_itself >= lack.share / 2


def fewer_threads(window: StepWindow) -> list[str]:
    """Where those threads take the launching thread's core."""
    lack, settings = short_of_cores(window), window.settings
    if lack is None or lack.share < CONTRIBUTOR or not its_own_threads(window, lack):
        return []
    if settings is None or not settings.threads or settings.threads < (window.cores or inf):
        return []
    few = max(1, settings.threads // 2)
    return [
        f"torch.set_num_threads({few}): its {settings.threads} threads take the launching thread's "
        f"core {percent(lack.share)} of the time"
    ]


def launch(window: StepWindow) -> Finding | None:
    """Idle time within the phases that nothing else explains: the host was not waiting, and what
    was queued can have run out (`idle_ledger`). Without a utilisation counter the rule abstains,
    and without stacks it asks that the GPU had caught up at the end of every phase.
    Removing it is bounded by the GPU's busy time and by the loader.
    """
    device, activity, ledger = on_device(window), window.activity, idle_ledger(window)
    if device is None or ledger is None or activity is None or activity.busy is None:
        return None
    share = _idle_in_phases(window, device, ledger.shares["launch"])
    if share.mean < CONTRIBUTOR:
        return None
    rows = device.rows
    if (found := cpu_starved(window, share)) is not None:
        return found
    issued = _issued(rows)
    evidence = [
        _dry(window, device),
        Evidence(_busy(activity.busy, activity.sm), counted_by(activity), activity.busy, "%"),
        Evidence(
            f"launching takes {ms(issued)} of {ms(device.step_ns)} per step",
            "event",
            issued / 1e6,
            "ms",
        ),
    ]
    larger = larger_batch(window, "as many launches, with more work in each")
    advice = [
        (GRAPHS_OF_SIZES if _sizes_vary(window) else GRAPH) + _without_waits(window),
        larger,
    ]
    advice[1:1] = fewer_threads(window)
    together = updated_together(window)
    if together and _in_optimizer(device) >= limits.MOST_OF_IT:
        advice.insert(0, f"most launches are the optimizer's: {together}")
    if window.settings is not None and window.settings.anomaly:
        advice.insert(0, ANOMALY_OFF)
    advice += _loops(window)
    cells, parts = looped_cells(window), called_in_parts(window)
    if cells is not None and cells.holds_most:
        advice.insert(0, cells.instead)
    by_parts = parts is not None and parts.holds_most
    if parts is not None and by_parts:
        advice.insert(0, f"{parts.instead}: as many launches as a part takes now")
    found = cause(
        "launch",
        None,
        share,
        f"the GPU waits for the next kernel {percent(share.mean)} of each step",
        tuple(evidence),
        tuple(advice),
        loader_floor(window),
        gain_without("launch", window),
    )
    first = (ANOMALY_OFF, None if cells is None else cells.instead)
    if found.speedup is None or not (by_parts or advice[0] in first):
        if (merged := _merged(found, larger, window)) is not None:
            return merged
        graphed = _steady_first(found, window) or _or_step_graph(found, window)
        return planned_anew(graphed, window)
    gain = gain_without("launch", window, at_most=False)
    if by_parts and (one_call := gain_of_one_call(window)) is not None:
        if not (any(map(recurs, main_places(window))) or _reads_anew(activity)):
            return replace(found, speedup=one_call.speedup, speedup_is="estimate")
        gain = one_call
    least = limits.LOOP_GIVES * (found.speedup if gain is None else gain.speedup)
    return replace(found, forecast=at_least(max(1.0, least)))


def _merged(found: Finding, larger: str, window: StepWindow) -> Finding | None:
    """Where gradients are accumulated: as many samples in fewer, `larger` kernels come before a
    graph of the small ones, which gives hardly more and leaves them small (a ViT, 16 batches of 4
    on an H200: 9.1x, where launches alone were 3.2x)."""
    several, graph = merging(window), found.speedup
    gain = None if several is None else gain_of_merging(window, several.times)
    if gain is None or graph is None or gain < limits.MOST_OF_THE_GAIN * graph:
        return None
    advice = (larger, *(one for one in found.advice if one != larger))
    return replace(found, advice=advice, speedup=gain, speedup_is="estimate")


def _steady_first(found: Finding, window: StepWindow) -> Finding | None:
    """A net that compiles anew is captured anew with each compilation: no graph gives anything
    before that ends, and then the compilations are spared as well. Sizes that vary end it by being
    few, for each of which there is a graph. Not where the end of them gives all that."""
    waits = found.advice[0].removeprefix(GRAPHS_OF_SIZES).removeprefix(GRAPH)
    if waits == found.advice[0] or found.speedup_is != "estimate":
        return None
    anew = recompile(window)
    if anew is None or (anew.share or 0.0) < CONTRIBUTOR:
        return None
    both = gain_without_both("launch", "recompile", window)
    alone = gain_without("recompile", window)
    if both is None or alone is None or both < speedup_of(ENTER_SHARE) * alone.speedup:
        return None
    if of_sizes(window) or _sizes_vary(window):
        first = GRAPHS_OF_SIZES + waits
    else:
        first = f"{GRAPH}{waits}; first end what compiles anew ({anew.advice[0]})"
    shares = found.share, found.share_low, found.share_high
    # Its rank is that of the launches alone: what compiles is a cause by itself.
    advice = (f"{first}, about {times(both)}", *found.advice[1:])
    return replace(found, advice=advice, forecast=interval_of("launch", both, *shares))


def _or_step_graph(found: Finding, window: StepWindow) -> Finding:
    """A graph of the net leaves the loss and the optimizer to the host. Where one of the whole step
    would give much more, that is said, and is the upper end of the forecast."""
    if not found.advice[0].startswith(GRAPH):
        return found
    gain = gain_of_step_graph(window) if _graph_holds_step(window) else None
    if _is_graphed(window):
        return _graphed_already(found, window, gain)
    likely = forecast_of(found)
    if likely is None or likely.high is None or likely.kind != "estimate":
        return found
    if gain is None or gain < STEP_GRAPH_WORTH * likely.speedup:
        return found
    whole = f"{GRAPH.removesuffix('step')}{_whole_step(window)}, about {times(gain)}"
    advice = (whole + found.advice[0].removeprefix(GRAPH), *found.advice[1:])
    forecast = replace(likely, high=max(likely.high, STEP_GRAPH_WITHIN * gain))
    return replace(found, advice=advice, forecast=forecast)


def _graphed_already(found: Finding, window: StepWindow, gain: float | None) -> Finding:
    """What is left to make of a net that is replayed as a graph: one of the whole step, with this
    `gain`; else a larger batch."""
    if gain is None or gain < speedup_of(ENTER_SHARE):
        most = speedup_of(found.share or 0.0)
        return replace(found, advice=found.advice[1:], speedup=most, speedup_is="bound")
    whole = f"a CUDA graph of the {_whole_step(window)}, about {times(gain)}: its net alone is one "
    within = Forecast(gain, max(1.0, STEP_GRAPH_LEAST * gain), STEP_GRAPH_WITHIN * gain)
    return replace(found, advice=(f"{whole}already", *found.advice[1:]), forecast=within)


def _is_graphed(window: StepWindow) -> bool:
    """A sample met a CUDA graph of the net as it was replayed; its backward's is on a thread of
    autograd's."""
    threads = () if window.stacks is None else window.stacks.threads
    return any(map(replays_graph, (*main_places(window), *threads)))


def _whole_step(window: StepWindow) -> str:
    """ "whole step with its optimizer (capturable=True)"."""
    name = window.settings and window.settings.optimizer
    how = " (capturable=True)" if name in CAPTURABLE else ""
    if name is None:
        how = " (capturable=True, if it has that)"
    return f"whole step with its optimizer{how}"


def _graph_holds_step(window: StepWindow) -> bool:
    """A GradScaler and an optimizer with a closure, or that counts its steps on the host, ask the
    host in each step, ranks wait for each other in it, micro-batches are fetched in it, and a
    library's loop is no place for it."""
    settings, stacks = window.settings, window.stacks
    if window.world_size > 1 or (settings is not None and settings.scaler):
        return False
    name = None if settings is None else settings.optimizer
    if name not in (None, "SGD", *CAPTURABLE):
        return False
    if stacks is not None and (stacks.framework in WITH_LOOPS or stacks.loop_of):
        return False
    # A penalty's backward now and then is no micro-batch.
    return window.passes < HALF_AS_MANY_MORE and not of_closures(window)


def _reads_anew(activity: GpuActivity) -> bool:
    """Memory traffic is most of what kernels do: for each part a net reads its weights and adds to
    their gradients anew, and nobody knows how much of it that is (an MLP of 800 MB on an H200 that
    read 49 % of the time: 6.9x by one call, where fewer launches give 2.0x)."""
    busy, dram = activity.busy, activity.dram
    return bool(busy) and dram is not None and moving(dram / (busy or 1.0)) >= limits.MOST_OF_IT


def _without_waits(window: StepWindow) -> str:
    """What stands in the way of a graph: the net asks for numbers."""
    waits = [one for one in main_places(window) if one.in_net and waits_for_gpu(one)]
    if share_held(waits) < CONTRIBUTOR:
        return ""
    return f"; no graph holds {call_at(waits[0], SYNC_CALL)}, so that goes first"


def _sizes_vary(window: StepWindow) -> bool:
    training = training_loader(window)
    return training is not None and bool(training.varies)


def _loops(window: StepWindow) -> list[str]:
    """A function of the user's own that is no module's forward and holds most of the launches."""
    places = within(main_places(window), LAUNCHING)
    own = [one for one in places if is_users(one) and own_frame(one)]
    own = [one for one in own if not (one.makes or copies_to_gpu(one))]
    own = [one for one in own if not one.in_net or own_frame(one) == one.frame]
    mine = by_user_function(own)
    whole = share_held(places)
    if not mine or function_of(mine[0].frame) == "forward" or mine[0].share < LOOP_SHARE * whole:
        return []
    return [
        f"{percent(mine[0].share / whole)} of the forward's launches come from {mine[0].frame}: "
        "turn a loop over samples or time steps there into one tensor expression"
    ]


def _busy(busy: float, sm: float | None) -> str:
    text = f"GPU busy {busy:.0f}% of the time"
    return text if sm is None else f"{text}, on {percent(sm / 100)} of its multiprocessors"


def _idle_in_phases(window: StepWindow, device: OnDevice, mean: float) -> Share:
    """Without what is the optimizer's own: a loop over the parameters that holds most of the
    launches is a cause by itself. Lines that wait for the GPU and that no sample met may explain
    some of it, as far as the interval of their share goes."""
    if (inside := _in_optimizer(device)) >= limits.MOST_OF_IT:
        mean *= 1 - inside
    share = without_rows(mean)
    if not main_places(window):
        return share
    waits = share_seen(window, waits_for_gpu)
    return Share(share.mean, max(0.0, share.low - (waits.high - waits.mean)), share.high)


def _in_optimizer(device: OnDevice) -> float:
    """Of the GPU's time within the phases the part in the optimizer, 0 to 1."""
    whole = _issued(device.rows)
    return sum(row.optimizer_ns for row in device.rows) / device.steps / whole if whole else 0.0


def _issued(rows: Sequence[GpuStep]) -> float:
    """Time of the phases on the GPU's clock, ns a step."""
    return sum(map(issued_of, rows)) / sum(row.count for row in rows)


def _dry(window: StepWindow, device: OnDevice) -> Evidence:
    """How it shows that the queue ran out."""
    if device.caught_up is not None and keeps_up(device):
        text = f"the GPU caught up with the host in {percent(device.caught_up)} of steps "
        text += "by the end of forward, backward and optimizer"
        return Evidence(text, "event", device.caught_up)
    dry = starved(window, device)
    text = f"for {percent(dry)} of the time it had no launch queued beyond what ran"
    return Evidence(text, "event", dry)
