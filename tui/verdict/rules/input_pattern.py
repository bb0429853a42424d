"""The workers are fast enough on average, and late now and then."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from ..code_places import reads, share_where, worker_places
from ..cpu_wait import starved, taken_by_workers, taken_of_threads, thread_advice
from ..findings import Evidence, Forecast
from ..forecast.interval import planned
from ..format import cores, ms, percent, size, times
from ..loader import HANDED_NS, Feeding, WorkerPlan, all_made
from ..place_names import file_of, function_of, own_frame, place_evidence, place_name
from ..scoring import speedup_of
from ..stack_samples import FrameShare
from ..step_time import spent
from ..thresholds import causes as limits
from ..thresholds.samples import LEAST_STACKS
from ..window import RunFacts, StepWindow, WorkerUse


@dataclass(frozen=True, slots=True)
class Explained:
    """Why the loader is late, what shows it, and what to do about it."""

    sub: str | None
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    gain_known: bool = True
    """Its first action can take all of the wait away; else its gain is unknown."""
    forecast: Forecast | None = None
    """What the first action gives, where that is not all of the wait."""


@dataclass(frozen=True, slots=True)
class WithoutWorkers:
    """`num_workers=0`, where a batch costs less to make than to receive."""

    advice: str
    forecast: Forecast
    is_most: bool
    """It gives most of what no wait at all would."""


Explanation = Callable[[StepWindow, Feeding], Explained | None]

SERIAL: Final = "num_workers=0: the training process loads every batch itself"
ALWAYS = 0.995
"""Part of the time that rounds to 100%."""
_DECODERS = ("ImageFile.py", "Image.py", "JpegImagePlugin.py", "PngImagePlugin.py", "_image.py")


_MADE = ("new", "_new", "fromarray", "frombuffer", "frombytes", "tobytes")
"""Functions of PIL that make a picture of numbers, or the reverse: nothing is decoded there."""


def decodes(place: FrameShare) -> bool:
    """Pictures or the like are decoded there."""
    name = function_of(place.frame)
    return (file_of(place.frame) in _DECODERS and name not in _MADE) or "decode" in name


def cheaper(place: FrameShare | None) -> str:
    """What to do about the place that holds a batch's time: the user's own function, for nobody
    changes a library's."""
    if place is None:
        return "make batches cheaper: store data at the size and type used"
    if decodes(place):
        what = "decode less: store images at the size used (of a JPEG PIL's Image.draft decodes "
        what += "a fraction), or decode on the GPU"
        return f"{what} ({place_name(place)})"
    what = "make it cheaper (vectorised, or on the GPU for a whole batch), or do it once and "
    what += "store the result"
    own = own_frame(place)
    return f"{what} ({own})" if own else what


def named(places: tuple[FrameShare, ...], whose: str) -> tuple[Evidence, ...]:
    """The place that holds most samples, as evidence."""
    return tuple(place_evidence(place, whose) for place in places[:1])


def folded(places: Iterable[FrameShare]) -> tuple[FrameShare, ...]:
    """The places with what libraries do inside summed up at the user's line that calls it, the
    largest first. What a decoder or a read does says more than the line."""
    sums: dict[FrameShare, float] = {}
    for place in places:
        own = own_frame(place)
        keeps = own is None or own == place.frame or decodes(place) or reads(place)
        kept = place if keeps else replace(place, frame=own or "", caller=None)
        key = replace(kept, share=0.0)
        sums[key] = sums.get(key, 0.0) + place.share
    summed = (replace(place, share=min(1.0, share)) for place, share in sums.items())
    return tuple(sorted(summed, key=lambda place: -place.share))


def gain(feeding: Feeding, batch_ns: float) -> str:
    """ "about 1.5x": what a batch time would give for the training."""
    return f"about {times(best_of(feeding, batch_ns).speedup)}"


def best_of(feeding: Feeding, batch_ns: float) -> Forecast:
    """The same as a forecast."""
    whole_ns = feeding.batch_ns + feeding.beside_ns
    share = (feeding.batch_ns - batch_ns) / whole_ns if whole_ns else 0.0
    return planned(speedup_of(max(0.0, share)), feeding.on_cpu)


def comes_first(plan: WorkerPlan, rest_ns: float) -> bool:
    """Another number of workers gives most of what no wait at all would, which leaves `rest_ns`."""
    return rest_ns >= limits.MOST_OF_THE_GAIN * plan.batch_ns


def without_any(window: StepWindow, feeding: Feeding) -> WithoutWorkers | None:
    """No workers, on a CPU where a batch costs less to make than to receive (tutorials' batches of
    four small pictures, two workers on two cores: 1.7x was measured twice). None where it gives
    less than a tenth."""
    use, taken = window.workers, _taken_by_all_workers(window)
    if window.gpu_present or use is None or use.run_delay is None:
        return None
    alone_ns = feeding.without_workers(taken, use.run_delay)
    if alone_ns is None or alone_ns >= feeding.batch_ns * (1 - limits.WORTH_DOING):
        return None
    net_ns, gives = feeding.other_ns - taken * feeding.batch_ns, best_of(feeding, alone_ns)
    more = ""
    if thread_advice(window):
        # The net's other threads wait for cores too, and it for them: nobody measures that.
        gives, more = replace(gives, high=None), " or more"
    text = f"num_workers {feeding.workers} → 0, {gain(feeding, alone_ns)}{more}: a batch takes "
    text += f"{ms(alone_ns - max(0.0, net_ns))} to make, and {ms(feeding.wait_ns)} to receive from "
    return WithoutWorkers(f"{text}a worker", gives, net_ns >= limits.MOST_OF_THE_GAIN * alone_ns)


def _taken_by_all_workers(window: StepWindow) -> float:
    """Part of the time, 0 to 1, in which the training thread had no core for the workers' sake: all
    of the wait that the run causes itself, where the net has no more threads than cores."""
    lack, settings = starved(window), window.settings
    if lack is None or lack.by_others is None or settings is None or settings.threads is None:
        return taken_by_workers(window)
    if settings.threads > (window.cores or 1.0):
        return taken_by_workers(window)
    own = lack.by_itself
    return max(own, taken_of_threads(window))


def or_without_any(window: StepWindow, feeding: Feeding, why: Explained) -> Explained:
    """The same with that advice: first where it gives most, else second."""
    found = without_any(window, feeding) if why.sub in _OF_THE_CORES else None
    if found is None:
        return why
    if found.is_most:
        advice = (found.advice, *why.advice)
        return replace(why, advice=advice, gain_known=True, forecast=found.forecast)
    return replace(why, advice=(*why.advice[:1], found.advice, *why.advice[1:]))


_OF_THE_CORES = (None, "workers", "cpu-bound", "oversubscribed")
"""Explanations of a loader whose workers compute; what waits is better made ahead."""


def received(feeding: Feeding) -> Evidence:
    """Receiving a batch of two tensors takes 1 to 2 ms, of any size (at least 0.7, median 1.3,
    upper quartile 2.0 ms in 66 generated runs), more where cores are short."""
    text = f"every batch lay ready: {ms(feeding.wait_ns)} are receiving it from its worker"
    return Evidence(text, "hook", feeding.wait_ns / 1e6, "ms")


def handed_over(window: StepWindow, feeding: Feeding) -> Explained | None:
    """Beside a GPU, where every batch lay ready. Of loaders without a slow batch 32 that do not pin
    made the training thread wait 1.5 ms for each batch, and 82 that do 0.2 ms (medians, H100 and
    H200): a thread receives batches where it pins them. What the training gains nobody measured, so
    that this is a bound; nor what fewer tensors give."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not window.gpu_present or not all_made(window):
        return None
    fewer = "fewer tensors in a batch, or larger batches: each tensor is handed over by itself"
    if loader.pin_memory:
        return Explained(None, (received(feeding),), (fewer,), gain_known=False)
    most = max(1.0, feeding.batch_ns / (feeding.other_ns + HANDED_NS))
    pin = "DataLoader(..., pin_memory=True): a thread of the loader's receives batches then"
    bound = Forecast(most, 1.0, most)
    return Explained(None, (received(feeding),), (pin, fewer), forecast=bound)


def limited_by(feeding: Feeding, wanted: int) -> str:
    """ "9 would hide it, you have 2 cores"; "" where the cores are enough."""
    if feeding.cores is None or wanted <= feeding.cores:
        return ""
    return f"; {wanted} workers would hide it, you have {cores(feeding.cores)}"


def waiting_itself(
    window: RunFacts, feeding: Feeding, places: tuple[FrameShare, ...]
) -> Explained | None:
    """Batches that the training process loads itself, and that mostly wait: for a server, an object
    store, a lock, a sleep. Workers that wait need no core. None where more of them give next to
    nothing."""
    plan = feeding.plan(limits.STORAGE_WORKERS_PER_CORE) if feeding.sleeps else None
    if plan is None or plan.batch_ns >= feeding.batch_ns * (1 - limits.WORTH_DOING):
        return None
    ran = window.host.thread_cpu or 0.0  # without its waits for a core, which others cause
    text = f"num_workers=0, at {percent(ran)} of a core: its batches wait"
    evidence = (Evidence(text, "proc", ran), *named(places, "main-thread"))
    more = f"num_workers 0 → {plan.workers}, {gain(feeding, plan.batch_ns)}: who waits needs no "
    more += f"core{split_stream(window)}"
    where = f" in {place_name(places[0])}" if places else ""
    less = f"or keep what it waits for{where} on a local disk or in memory, or fetch many at once"
    forecast = best_of(feeding, plan.batch_ns)
    return Explained("serial", evidence, (more, less), forecast=forecast)


def split_stream(window: RunFacts) -> str:
    """What workers need of an iterable dataset: "" for others."""
    loader = window.loaders[0] if window.loaders else None
    seen = window.stacks is not None and window.stacks.streams
    if not (seen if loader is None else loader.kind == "stream"):
        return ""
    return "; its __iter__ must split the stream by get_worker_info(), or each worker repeats it"


def burst(window: StepWindow, feeding: Feeding) -> Explained | None:
    """80 % of the wait in 15 % of the steps, while workers have time to spare.

    Batches come back in order, so W workers that are simply too slow make one step in W wait: where
    it is unknown how busy they are, a burst must be rarer than half of that.
    """
    if not feeding.workers:
        return None
    concentration = _concentration([row.data_ns for row in window.steps])
    if concentration > limits.BURST_STEPS:
        return None
    known = window.stacks is not None and window.stacks.worker_samples >= LEAST_STACKS
    if known and feeding.busy is not None:
        if _busy_in_training(window, feeding.busy) >= limits.BURST_BUSY:
            return None
    elif concentration > 0.5 / feeding.workers:
        return None
    longest = max(row.data_max_ns for row in window.steps)
    evidence = [
        Evidence(
            f"80% of the wait is in {percent(concentration)} of the steps, up to {ms(longest)}",
            "hook",
            longest / 1e6,
            "ms",
        )
    ]
    if known and feeding.busy is not None:
        text = f"workers are busy only {percent(feeding.busy)} of the time"
        evidence.append(Evidence(text, "py-spy", feeding.busy))
    places = folded(worker_places(window))
    evidence += named(places, "worker")
    return Explained("burst", tuple(evidence), _advice(window, feeding, longest, places))


def _busy_in_training(window: StepWindow, busy: float) -> float:
    """The same part without the evaluations and checkpoints, while which the training's workers
    have nothing to do once their queues are full."""
    total = spent(window.steps)
    return min(1.0, busy * total.wall_ns / max(1, total.wall_ns - total.paused_ns))


def _advice(
    window: StepWindow, feeding: Feeding, longest_ns: int, places: tuple[FrameShare, ...]
) -> tuple[str, ...]:
    """The queue of W * prefetch batches must outlast the spike."""
    most = own_frame(places[0]) if places else None
    where = f" in {most}" if most else ""
    find = f"find what makes some batches late{where}: a large sample, a cache refill, a retry"
    have = window.loaders[0].prefetch_factor or 2
    if feeding.other_ns <= 0 or not feeding.workers:
        return (find,)
    needed = ceil(limits.WORKER_HEADROOM * longest_ns / feeding.other_ns / feeding.workers)
    if needed <= have:
        return (find,)
    if needed <= limits.MOST_PREFETCH:
        return (
            f"prefetch_factor {have} → {needed}: the queue then outlasts {ms(longest_ns)}",
            find,
        )
    return (
        find,
        f"prefetch_factor {have} → {limits.MOST_PREFETCH} would help, but not hide it",
    )


def _concentration(waits_ns: list[int]) -> float:
    """The smallest share of the rows that holds 80 % of the wait."""
    whole = sum(waits_ns)
    if whole <= 0:
        return 1.0
    held = 0
    for taken, wait in enumerate(sorted(waits_ns, reverse=True), start=1):
        held += wait
        if held >= limits.BURST_MASS * whole:
            return taken / len(waits_ns)
    return 1.0


def waiting(window: RunFacts, feeding: Feeding) -> Explained | None:
    """Worker CPU below 50 %, and no core that they wait for. `storage` where a disk is seen to be
    read: bytes that come from one, or workers in state D. Else `waits`: for a server, an object
    store, a lock, a sleep, as far as the stacks name it."""
    use = window.workers
    if not feeding.workers or use is None or use.cpu_percent is None:
        return None
    if use.exited and use.oldest_s < limits.WORKER_CPU_KNOWN_S:
        return None
    busy = feeding.busy if feeding.busy else 1.0
    if use.cpu_percent >= limits.WORKER_CPU_WAITS * busy:
        return None
    places = worker_places(window)
    if _queue_for_a_core(window, use, busy, share_where(places, reads)):
        return None
    on_disk = _on_disk(use, busy)
    text = "workers always busy" if busy >= ALWAYS else f"workers busy {percent(busy)} of the time"
    text += f", yet using {use.cpu_percent:.0f}% of a core"
    if on_disk and use.disk_wait_share:
        text += f", waiting for a disk {percent(use.disk_wait_share)} of the time"
    if on_disk and use.read_bytes_s:
        text += f", reading {size(use.read_bytes_s)} per second"
    if not on_disk:
        text += ": they wait, and not for a disk of this machine"
    shown = tuple(filter(reads, places)) or places
    advice = [_fetch_less(on_disk, shown)]
    forecast = None
    if (more := _more_that_wait(feeding)) is not None:
        # By the host's clock: what the GPU idles beside the wait is no work that hides a batch.
        first = comes_first(more, feeding.batch_ns - feeding.wait_ns)
        forecast = best_of(feeding, more.batch_ns) if first else None
        have = f" of {cores(feeding.cores)}" if feeding.cores else ""
        many = f"num_workers {feeding.workers} → {more.workers}, {gain(feeding, more.batch_ns)}: a "
        many += f"batch waits {ms(feeding.make_ns or 0.0)} and uses little{have}"
        many += split_stream(window)
        advice.insert(0 if first else 1, many)
    evidence = (Evidence(text, "proc", use.cpu_percent, "%"), *named(shown, "worker"))
    sub = "storage" if on_disk else "waits"
    return Explained(sub, evidence, tuple(advice), forecast=forecast)


def _on_disk(use: WorkerUse, busy: float) -> bool:
    read = (use.read_bytes_s or 0.0) >= limits.READ_BYTES_S
    return read or (use.disk_wait_share or 0.0) >= limits.READ_SHARE * busy


def _fetch_less(on_disk: bool, shown: tuple[FrameShare, ...]) -> str:
    """What shortens the wait itself."""
    if on_disk:
        return "keep a copy on a local disk or in memory, or pack small files into a few large ones"
    where = f" in {place_name(shown[0])}" if shown else ""
    if shown and not reads(shown[0]):
        return f"see what workers wait for{where}: a lock, a server, another process"
    return (
        f"workers wait for what they fetch{where}: keep a copy on a local disk or in memory, or "
        "fetch many at once"
    )


def _more_that_wait(feeding: Feeding) -> WorkerPlan | None:
    """Workers that only wait need no core: more of them, where that helps."""
    more = feeding.plan(limits.STORAGE_WORKERS_PER_CORE)
    return None if more is None or more.workers <= (feeding.workers or 0) else more


def _queue_for_a_core(window: RunFacts, use: WorkerUse, busy: float, reading: float) -> bool:
    """Workers that are ready to run wait for nothing but a core. Where the kernel does not report
    that, a full machine does, unless the stacks see them read."""
    if use.run_delay is not None and use.cpu_percent is not None:
        wants = use.cpu_percent + 100 * use.run_delay
        return wants >= limits.WORKER_CPU_WAITS * busy
    full = (window.machine_cpu_percent or 0.0) > limits.MACHINE_FULL
    return full and reading < limits.READ_SHARE * busy
