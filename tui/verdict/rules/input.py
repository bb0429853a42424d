"""The step waits for data: the rule, and what explains it by the workers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..code_places import (
    fetches_tensors,
    frees_batch,
    main_places,
    share_where,
    within,
    worker_places,
)
from ..cpu_wait import (
    taken_by_workers,
    thread_advice,
)
from ..cycles import Cycles, best_known
from ..exposed_wait import exposed_parts
from ..findings import Evidence, Finding, Forecast
from ..forecast.gain import Gain, gain_on_the_host, gain_without
from ..forecast.interval import CORES_ERROR_ON_CPU, INPUT_ERROR_ON_CPU, alone_on_cpu
from ..format import cores, ms, percent
from ..idle_ledger import crowded, of_the_loader
from ..loader import Feeding, WorkerPlan, evaluates_the_same, feeding, training_loader
from ..on_device import OnDevice, on_device
from ..pauses import evaluation_data_part
from ..place_names import place_evidence
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare, StackPhase
from ..statistics import Share, added, share_of, times
from ..step_time import spent, wall_of
from ..thresholds import causes as limits
from ..thresholds.gpu import HIDDEN_WORTH
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import RunFacts, StepWindow
from .input_cores import crowded_out
from .input_epoch_start import begun_anew, begun_beside, epoch_start, is_short
from .input_many_threads import (
    cores_full,
    cores_used,
    oversubscribed,
    queue_for_cores,
    threaded,
)
from .input_on_host import or_kept_on_gpu
from .input_on_thread import drawn_here, pinned_late, unmarked
from .input_pattern import (
    SERIAL,
    Explained,
    Explanation,
    best_of,
    burst,
    cheaper,
    comes_first,
    folded,
    gain,
    handed_over,
    limited_by,
    named,
    or_without_any,
    split_stream,
    waiting,
    waiting_itself,
)

# num_workers=0: the training process loads every batch itself, between two steps.


def serial(window: StepWindow, feeding: Feeding) -> Explained | None:
    """The batch costs the training thread what it would cost a worker: that is the forecast."""
    if feeding.workers != 0:
        return None
    places = loading_places(window)
    if (why := waiting_itself(window, feeding, places)) is not None:
        return why
    evidence = [Evidence(SERIAL, "hook", 0.0, "workers"), *named(places, "main-thread")]
    advice = [cheaper(places[0] if places else None)]
    plan, forecast = feeding.plan(), None
    if plan is not None and feeding.cores != 1:
        costs = f"a batch takes {ms(feeding.wait_ns)}, the rest of the step {ms(feeding.other_ns)}"
        limited = limited_by(feeding, plan.wanted)
        first = workers_first(feeding, plan)
        forecast = best_of(feeding, plan.batch_ns) if first else None
        wanted = f"num_workers 0 → {plan.workers}{_kept(window, feeding)}"
        more = f"{wanted}, {gain(feeding, plan.batch_ns)} ({costs}{limited}){split_stream(window)}"
        if not first and feeding.fills_cores:
            more = f"workers will not help: {costs}, and both need the {cores(feeding.cores or 1)}"
        advice.insert(0 if first else 1, more)
    return Explained("serial", tuple(evidence), tuple(advice), forecast=forecast)


def _kept(window: StepWindow, feeding: Feeding) -> str:
    """Workers that start with every epoch cost more than they spare in short ones."""
    loader = window.loaders[0] if window.loaders else None
    return " and persistent_workers=True" if is_short(loader, feeding) else ""


def workers_first(feeding: Feeding, plan: WorkerPlan) -> bool:
    """A loader that has none gets workers first where they give most of what no wait at all would;
    and beside a GPU, whose net does not need the cores, where nothing but the number of cores keeps
    more of them from it. Single slow batches no number of workers hides."""
    if comes_first(plan, feeding.other_ns):
        # On a CPU workers that give next to nothing are worth no core of the net's.
        worth = plan.batch_ns < feeding.batch_ns * (1 - limits.WORTH_DOING)
        return worth or not feeding.on_cpu
    return not feeding.on_cpu and feeding.cores is not None and plan.wanted > feeding.cores


LOADING: Final[frozenset[StackPhase]] = frozenset(("data",))


def loading_places(window: RunFacts) -> tuple[FrameShare, ...]:
    """Where the training thread makes a batch: of what the loader calls there, never of the net or
    the optimizer, the user's own lines."""
    return folded(within(main_places(window), LOADING))


def too_few_workers(window: StepWindow, feeding: Feeding) -> Explained | None:
    """`workers` where other numbers would give 10 % or more, by the model of `Feeding`; `cpu-bound`
    where they would not, and the cores are full."""
    workers = feeding.workers
    full, used = queue_for_cores(window, feeding) or cores_full(window), cores_used(window)
    free = full is None and used is not None and used < limits.CORES_FREE
    plan = feeding.plan(limits.WORKERS_PER_FREE_CORE if free else 1)
    if not workers or plan is None or feeding.make_ns is None:
        return None
    places = folded(worker_places(window))
    evidence = [_cost(window, feeding), *named(places, "worker")]
    use = window.workers
    if use is not None and use.cpu_percent is not None:
        text = f"{workers} worker{'s use' if workers > 1 else ' uses'} {use.cpu_percent:.0f}% "
        text += "of a core each" if workers > 1 else "of a core"
        if feeding.cores:
            text += f", of {cores(feeding.cores)}"
        evidence.append(Evidence(text, "proc", use.cpu_percent, "%"))
    less = cheaper(places[0] if places else None)
    more = f"num_workers {workers} → {plan.workers}, {gain(feeding, plan.batch_ns)}"
    split = split_stream(window)
    if plan.workers > workers and plan.batch_ns < feeding.batch_ns * (1 - limits.WORTH_DOING):
        costs = f"one worker needs {ms(feeding.make_ns)} per batch, the rest of the step takes "
        costs += f"{ms(feeding.other_ns)}{limited_by(feeding, plan.wanted)}"
        apart = thread_advice(window)
        if not comes_first(plan, feeding.other_ns * (1 - taken_by_workers(window))):
            return Explained("workers", tuple(evidence), (less, f"{more} ({costs}){split}", *apart))
        best, advice = best_of(feeding, plan.batch_ns), (f"{more} ({costs}){split}", less, *apart)
        return Explained("workers", tuple(evidence), advice, forecast=best)
    if full is not None:
        wont = f"more workers will not help: {full.text}{limited_by(feeding, plan.wanted)}"
        return Explained("cpu-bound", tuple(evidence), (less, wont, *thread_advice(window)))
    if plan.workers > workers:
        return Explained(None, tuple(evidence), (less, more))
    wont = "more workers will not help: on average they keep up, and single batches are late"
    if plan.wanted > workers and feeding.cores:
        wont = f"{workers} workers on {cores(feeding.cores)}: more would share them"
    return Explained(None, tuple(evidence), (less, wont))


def _cost(window: StepWindow, feeding: Feeding) -> Evidence:
    """Other processes on these cores make each batch dearer than it need be."""
    make_ns = feeding.make_ns or 0.0
    text = f"one worker needs {ms(make_ns)} per batch"
    if feeding.busy is not None and feeding.busy < limits.BURST_BUSY:
        text += f", workers are busy {percent(feeding.busy)} of the time"
    here, others = window.cores, window.host.others_cores
    if here and others is not None and others >= limits.OTHERS_USE * here:
        text += f"; other processes use {others:.1f} of {cores(here)}"
    return Evidence(text, "hook", make_ns / 1e6, "ms")


EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    begun_anew,
    epoch_start,
    drawn_here,
    serial,
    pinned_late,
    burst,
    handed_over,
    waiting,
    threaded,
    oversubscribed,
    too_few_workers,
)
"""The first that applies. An iterator for every batch is no loader's fault. Waiting at epoch starts
comes before workers because more of them make it worse, and a sampler because none of them runs it;
what one thread receives before the workers that wait for it; a burst before what its few late
batches wait for, since the mean is fast enough; batches that lay ready are no worker's fault; the
cores before the number of workers because they limit it."""


def input_bound(window: StepWindow) -> Finding | None:
    """Data wait and loader start-up, part of the wall time.

    With a GPU only its idle time counts: a batch that is late on the host may still be in time for
    a GPU that is behind (diagnosis, 2nd finding). That part is measured on its own clock, on
    the steps that were sampled, and taken of each step's wait. Where its clock is not read, this
    is what the *host* waits, an upper bound.
    """
    rows = window.steps
    device = on_device(window)
    starts = [row.startup_ns for row in window.steps]
    waits = [row.data_ns + start for row, start in zip(rows, starts, strict=True)]
    parts = exposed_parts(window)
    share = of_the_loader(window, share_of(parts, [wall_of(row) for row in rows]))
    fed = feeding(window)
    if fed is None:
        return unmarked(window)
    taken = 0.0 if window.gpu_present else taken_by_workers(window)
    if taken > max(CONTRIBUTOR, share.mean):
        return crowded_out(window, fed, share, taken)
    if share.mean < CONTRIBUTOR:
        return None
    total = spent(rows)
    steps = max(1, total.steps)
    wait_ns, step_ns = sum(parts) / steps, total.wall_ns / steps
    waited = _waited(wait_ns, step_ns, sum(waits) / steps, device)
    gain = gain_without("input", window)
    gain = gain or gain_on_the_host(window, share.mean, frees_cores=True)
    why = explained(window, fed)
    if (beside := _waits_of_evaluations(window, why)) is not None:
        gain = gain and _with_evaluations(gain, beside)
        both = gain.speedup if gain else speedup_of(added(share, beside).mean)
        why = _cheaper_first(fed, why, both)
    why = or_kept_on_gpu(window, fed, or_without_any(window, fed, why))
    headline = f"GPU idle {percent(share.mean)} of each step, waiting for data"
    if device is None:
        headline = f"waiting for data takes {percent(share.mean)} of each step"
    if why.sub == "epoch-start":
        what = "epochs" if begun_beside(window) is None else "another loader than the training's"
        headline = f"starting {what} takes {percent(share.mean)} of the time"
    if window.gpu_present and device is None:
        headline += ", by the host's clock"
    if beside is not None and why.sub in OF_ITEMS:
        parts_of = f"{percent(share.mean)} in training, {percent(beside.mean)} in evaluations"
        share = added(share, beside)
        headline = f"waiting for data takes {percent(share.mean)} of the time: {parts_of}"
    fetched = _fetched(window)
    evidence = (*waited, *_shown(window, *_GIVEN_BACK), *fetched, *why.evidence)
    if gain is not None and fetched and window.gpu_present:
        gain = replace(gain, speedup_is="bound")
    finding = cause("input", why.sub, share, headline, evidence, why.advice, gain=gain)
    if not why.gain_known:
        return replace(finding, speedup=None, speedup_is=None)
    forecast = why.forecast
    of_starts = why.sub in ("epoch-start", "on-host")
    if of_starts and forecast is not None and forecast.kind != "at-least":
        # What comes first is worth what starts take, not all waits of the loader; or copies too.
        # Where only the least of it is known the cause stays worth what it holds.
        finding = replace(finding, speedup=forecast.speedup)
    if forecast is None and gain is not None and not window.gpu_present:
        forecast = _on_cpu(window, finding, gain.speedup)
    return replace(finding, forecast=forecast)


# Evaluations wait for batches that are made as the training's are: cheaper ones serve both.

OF_ITEMS: Final = frozenset({"serial", "workers", "cpu-bound"})
"""Why the training waits, where it is what a batch costs to make."""


def _waits_of_evaluations(window: StepWindow, why: Explained) -> Share | None:
    """Part of the run's time that evaluations wait for batches of the same kind of dataset, made as
    the training's are, by workers or by the training thread; None where that is hardly any. Behind
    a wait of the host's a GPU may still be at work: then the least is nothing."""
    own, loader = training_loader(window), evaluates_the_same(window)
    if own is None or loader is None or why.sub not in OF_ITEMS:
        return None
    if bool(own.num_workers) != bool(loader.num_workers):
        return None
    found = best_known(window)
    if found is None:
        return None
    share = found.pauses.share if isinstance(found, Cycles) else found.share
    waits = times(share, evaluation_data_part(window))
    if waits.mean < CONTRIBUTOR:
        return None
    return replace(waits, low=0.0) if window.gpu_present else waits


def _with_evaluations(gain: Gain, waits: Share) -> Gain:
    """What no wait for batches gives, where a replay knows of the training's alone."""
    return replace(gain, speedup=speedup_of(1.0 - 1.0 / gain.speedup + waits.mean))


def _cheaper_first(feeding: Feeding, why: Explained, speedup: float) -> Explained:
    """The same, with cheaper batches first where `speedup` by them is far more than what other
    workers for the training's give. Batches that wait for something are hidden by workers alone."""
    forecast = why.forecast
    if forecast is None or feeding.sleeps or forecast.speedup >= limits.MOST_OF_THE_GAIN * speedup:
        return why
    more, less, *rest = why.advice
    return replace(why, advice=(less, more, *rest), forecast=None)


def _on_cpu(window: StepWindow, finding: Finding, speedup: float) -> Forecast:
    """Of cheaper batches. A worker that computes hands a finished batch over late, so that they
    take away of the handing over what nobody knows: at the low end none."""
    shared = finding.sub in ("cpu-bound", "oversubscribed")
    error = CORES_ERROR_ON_CPU if shared else INPUT_ERROR_ON_CPU
    share, low, high = finding.share, finding.share_low, finding.share_high
    whole = alone_on_cpu("input", speedup, share, low, high, error)
    if finding.sub in ("workers", "cpu-bound") and thread_advice(window):
        # Threads of one product that lack a core wait for each other: 10x for 2.5x was measured.
        whole = replace(whole, high=None)
    handed = share_where(main_places(window), fetches_tensors)
    if not _fetched(window):
        return whole
    return replace(whole, low=min(whole.low, speedup_of(max(0.0, (share or 0.0) - handed))))


def _waited(
    exposed_ns: float, step_ns: float, host_ns: float, device: OnDevice | None
) -> tuple[Evidence, ...]:
    if device is None:
        text = f"{ms(exposed_ns)} of {ms(step_ns)} per step spent waiting for the loader"
        return (Evidence(text, "hook", exposed_ns / 1e6, "ms"),)
    text = f"GPU idle {ms(exposed_ns)} of {ms(step_ns)} per step, waiting for data"
    if host_ns - exposed_ns >= HIDDEN_WORTH * step_ns:
        text += f"; another {ms(host_ns - exposed_ns)} of host wait is hidden behind its work"
    return (Evidence(text, "event", exposed_ns / 1e6, "ms"),)


def _fetched(window: StepWindow) -> tuple[Evidence, ...]:
    """A wait for a batch that is made, and still has to be handed over by its worker: cheaper
    batches do not take all of it away."""
    return _shown(window, fetches_tensors, "receiving a finished batch from a worker")


_GIVEN_BACK: Final = frees_batch, "the memory of the batch before is given back"


def _shown(
    window: StepWindow, which: Callable[[FrameShare], bool], what: str
) -> tuple[Evidence, ...]:
    """Such places, where they hold so much that cheaper batches are not all."""
    places = [place for place in main_places(window) if which(place)]
    if share_where(places, which) < limits.HANDED_OVER:
        return ()
    shown = place_evidence(places[0], "main-thread")
    return (replace(shown, text=f"{shown.text}: {what}"),)


def explained(window: StepWindow, fed: Feeding) -> Explained:
    """The first explanation that applies; what the main thread does where none does. Workers that
    hold the training's own cores come before all: whatever else they wait for."""
    if crowded(window) and (found := oversubscribed(window, fed)) is not None:
        return found
    for explanation in EXPLANATIONS:
        if (found := explanation(window, fed)) is not None:
            return found
    places = loading_places(window)
    return Explained(None, named(places, "main-thread"), (cheaper(places[0] if places else None),))
