"""Another process holds what this run needs: the GPU's time, or the cores."""

from dataclasses import replace
from typing import Final

from ..code_places import (
    in_pytorch,
    main_places,
    multiplies_in_numpy,
    reads,
    share_held,
    share_where,
)
from ..cpu_wait import (
    asleep,
    core_wait_evidence,
    other_threads,
    remedies,
    starved,
    without_a_core,
)
from ..findings import Evidence, Finding, Forecast
from ..forecast.interval import at_least
from ..format import cores, percent, size
from ..gpu_activity import GpuActivity, Neighbour
from ..job.crowding import lost_to_others, taken
from ..job.facts import Job, RankFacts
from ..loader import loader_floor
from ..on_device import on_device
from ..place_names import by_user_function, place_evidence, place_name
from ..scoring import cause, held_by, speedup_of
from ..stack_samples import FrameShare
from ..statistics import Share, at_most, of_samples, without_rows
from ..thresholds.gpu import CAUGHT_UP_STEPS
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import RunFacts, StepWindow

OF_PROCESSES: Final = 0.1
"""Cores that other processes of the run use, from which on they may be what has the cores."""
MOST_NAMED: Final = 4
"""Ranks that are named by their numbers; more are counted."""


def contention(window: StepWindow) -> Finding | None:
    """With a GPU, its time, or that of its job's GPUs; without one, the cores. A GPU's run that
    waits for a core is `launch`, where that makes the GPU wait too."""
    if window.gpu_present:
        if window.job is not None and lost_to_others(window.job) is not None:
            return of_the_job(window.job)
        return _of_the_gpu(window)
    found = (
        threads_of_its_own(window),
        threads_of_numpy(window),
        lock_held(window),
        core_contention(window, loader_floor(window)),
    )
    return max(filter(None, found), key=held_by, default=None)


def threads_of_its_own(window: StepWindow) -> Finding | None:
    """PyTorch has more threads than there are cores. An operation is done with the last of its
    threads, of which some always wait for a core: the training thread waits for a core that its own
    threads have, or sleeps until they are done. Both are measured, and the time that it runs is
    not. What it sleeps for, samples tell."""
    settings, have, lack, slept = window.settings, window.cores, starved(window), asleep(window)
    if settings is None or settings.threads is None or settings.parameter_device != "cpu":
        return None
    if have is None or settings.threads <= have or lack is None or lack.by_others is None:
        return None
    if slept is None or _waits(window) >= CONTRIBUTOR:
        return None  # a sleep that the run's own lines explain
    own = lack.by_itself
    most = slept if own >= CONTRIBUTOR else min(slept, _run_meanwhile(window))
    for_threads = _for_threads(window, most)
    share = without_rows(min(1.0, own + for_threads.mean))
    low, high = own + for_threads.low, min(1.0, own + for_threads.high)
    share = Share(share.mean, min(share.low, low), max(share.high, high))
    if share.mean < CONTRIBUTOR:
        return None
    text = f"{settings.threads} threads of PyTorch's on {cores(have)}"
    waits = f"the training thread waits for a core that they have {percent(own)} of the time, and "
    waits += f"sleeps {percent(slept)} of it, {percent(for_threads.mean)} for them"
    found = cause(
        "contention",
        "threads",
        share,
        f"{text} wait for each other {percent(share.mean)} of the time",
        (Evidence(waits, "proc", share.mean), Evidence(text, "hook", float(settings.threads))),
        (f"torch.set_num_threads({max(1, int(have))}), or OMP_NUM_THREADS: no more than cores",),
        loader_floor(window),
    )
    return replace(found, speedup_is="estimate")


def _run_meanwhile(window: StepWindow) -> float:
    """Cores that the threads of its operations use: where the training thread finds a core, and
    sleeps, others of its threads may have lost theirs, which go on while it waits for the last (6
    threads on two cores: asleep 21 % of the time, 1.4x by two or one). 0 where another of Python's
    threads computes, or that is not known: the sleep may be for that one."""
    stacks = window.stacks
    if stacks is None or share_held(stacks.threads) >= CONTRIBUTOR:
        return 0.0
    return other_threads(window) or 0.0


def _for_threads(window: StepWindow, slept: float) -> Share:
    """What of its sleep the training thread sleeps for them: in other lines than PyTorch's, a
    reader's or a tokenizer's, it is for those, which may be all of it or nothing. None beside other
    ranks, for which it sleeps too."""
    if window.world_size > 1:
        return Share(0.0, 0.0, 0.0)
    elsewhere = share_where(main_places(window), lambda one: _runs_no_pytorch(one, window))
    return Share(slept * (1.0 - elsewhere), max(0.0, slept - elsewhere), slept)


def _runs_no_pytorch(place: FrameShare, window: StepWindow) -> bool:
    """In a phase whose sleep no mark explains."""
    unmarked = ("other", "checkpoint") if window.sees_loading else ("other", "checkpoint", "data")
    return place.phase in unmarked and not in_pytorch(place)


def _waits(window: StepWindow) -> float:
    """Part of the training thread's samples in lines that wait for something else."""
    waits = 0.0 if window.stacks is None else window.stacks.main_waits
    return waits + share_where(main_places(window), reads)


def threads_of_numpy(window: StepWindow) -> Finding | None:
    """NumPy multiplies matrices with threads of its own, one for each core. They spin when they are
    done, OpenBLAS's for 2^26 ticks of the clock, 20 ms, MKL's for 0.2 s, on the cores that
    PyTorch's threads want meanwhile: the training thread waits for one that its own process has,
    though PyTorch has no more threads than cores. At the least that wait is given back; of two
    threads each loses as much, at other times, and an operation is done with the last of them.

    A graph's auto-encoder on two cores, scored by `np.dot` in each step: the wait is 11 %, 1.27x
    were forecast and measured with one thread of OpenBLAS's. A net that goes to a GPU leaves NumPy
    the cores."""
    settings, have, lack = window.settings, window.cores, starved(window)
    if window.gpu_unused or settings is None or settings.threads is None or have is None:
        return None
    if settings.threads > have or lack is None or lack.by_others is None:
        return None
    others, beside, stacks = other_threads(window), window.host.beside_cores, window.stacks
    if others is None or beside is None or beside - others >= OF_PROCESSES or stacks is None:
        return None
    products = [one for one in main_places(window) if multiplies_in_numpy(one)]
    share = without_rows(lack.by_itself)
    if min(share.mean, share_held(products)) < CONTRIBUTOR:
        return None
    if share_held(stacks.threads) >= CONTRIBUTOR:
        return None  # another thread of Python's computes
    where = place_name(by_user_function(products)[0])
    used = f"its process's other threads use {others:.1f} of {cores(have)}, other processes "
    used += f"{window.host.others_cores or 0.0:.1f}"
    found = cause(
        "contention",
        "numpy",
        share,
        "NumPy's threads have the cores of PyTorch's: training waits for one "
        f"{percent(share.mean)} of the time",
        (
            without_a_core(share.mean),
            place_evidence(products[0], "main-thread"),
            Evidence(used, "proc", others, "cores"),
        ),
        (
            f"OPENBLAS_NUM_THREADS=1 (of MKL's: MKL_NUM_THREADS=1): the threads of {where} go on "
            "spinning after each product",
            f"or make it with PyTorch's operations, on PyTorch's threads, or less often: {where}",
        ),
    )
    likely = speedup_of(1.0 - (1.0 - share.mean) ** 2)
    return replace(found, forecast=Forecast(likely, speedup_of(share.low), None))


def lock_held(window: StepWindow) -> Finding | None:
    """Another Python thread of the process computes. Python runs one of them at a time, and each
    time that the training thread has let go of the lock, in every operation that computes without
    it, it waits for up to 5 ms (`sys.getswitchinterval`) to get it back: asleep, in lines that do
    not sleep. Of that no more than the others run, by their CPU time and by their samples."""
    slept, stacks, others = asleep(window), window.stacks, other_threads(window)
    if slept is None or stacks is None or others is None:
        return None
    own = slept - _waits(window)
    seen = of_samples(min(1.0, share_held(stacks.threads)), stacks.main_samples)
    share = at_most(seen, max(0.0, min(own, others)))
    if share.low < CONTRIBUTOR:
        return None
    place = by_user_function(stacks.threads)[0]
    text = f"the training thread sleeps {percent(slept)} of the time, in lines that compute"
    beside = f"other threads of the process use {others:.1f} cores"
    met = round(place.share * stacks.main_samples)
    there = (
        f"in {met:,} of {stacks.main_samples:,} samples another thread is in {place_name(place)}"
    )
    found = cause(
        "contention",
        "lock",
        share,
        f"training waits for Python's lock {percent(share.mean)} of the time: another thread of "
        "this process computes",
        (
            Evidence(text, "proc", own),
            Evidence(there, "py-spy", place.share),
            Evidence(beside, "proc", others, "cores"),
        ),
        (
            "Python runs one thread at a time: do it in another process (a DataLoader's workers), "
            f"or less of it: {place_name(place)}",
        ),
    )
    return replace(found, forecast=at_least(speedup_of(share.low)))


def of_the_job(job: Job) -> Finding | None:
    """The same for the GPUs of several ranks, which wait for each other. By the job's figures
    alone, so that it is one verdict, whichever rank is watched."""
    share = lost_to_others(job)
    if share is None or share.mean < CONTRIBUTOR:
        return None
    crowded = sorted((one for one in job.ranks if taken(one)), key=lambda one: -taken(one))
    numbers = sorted(one.rank for one in crowded)
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    ranks = f"ranks {listed}" if len(numbers) <= MOST_NAMED else f"{len(numbers)} ranks"
    return cause(
        "contention",
        "gpu",
        share,
        f"other processes hold the GPUs of {ranks}, up to {percent(taken(crowded[0]))} of the time",
        tuple(_crowd(one) for one in crowded[:3]),
        (
            "give this job GPUs of its own: see who else is on them with nvidia-smi",
            "collectives and late ranks show little meanwhile: each rank's work waits for its turn",
        ),
    )


def _crowd(rank: RankFacts) -> Evidence:
    used = taken(rank)
    many = "another process uses" if rank.sharers == 1 else f"{rank.sharers} other processes use"
    where = f"rank {rank.rank}" + (f" ({rank.host})" if rank.host else "")
    return Evidence(f"{where}: {many} {percent(used)} of its GPU's time", "nvml", 100 * used, "%")


def _of_the_gpu(window: StepWindow) -> Finding | None:
    """Processes take turns on a GPU: while others hold it for x of the time, work that waits for
    it takes up to 1 / (1 - x) as long. Time in which it would stand idle for data, or keep up with
    the host anyway, is not lost. Abstains where NVML does not report x."""
    activity, device = window.activity, on_device(window)
    if activity is None or not activity.others_sm or device is None:
        return None
    if device.caught_up is not None and device.caught_up >= CAUGHT_UP_STEPS:
        return None
    wanted = max(0.0, 1 - device.exposed_ns / device.step_ns) if device.step_ns else 0.0
    share = without_rows(activity.others_sm / 100 * wanted)
    if share.mean < CONTRIBUTOR:
        return None
    who = _named(activity.neighbours[0]) if activity.neighbours else "another process"
    return cause(
        "contention",
        "gpu",
        share,
        f"other processes hold the GPU {percent(activity.others_sm / 100)} of the time",
        _holders(activity),
        (f"give this run a GPU of its own: another in CUDA_VISIBLE_DEVICES, or move {who}",),
        loader_floor(window),
    )


def _holders(activity: GpuActivity) -> tuple[Evidence, ...]:
    evidence = []
    for one in activity.neighbours[:3]:
        text = _named(one)
        if one.sm_percent is not None:
            text += f" uses {one.sm_percent:.0f}% of the GPU's time"
        if one.memory_bytes is not None:
            text += f", {size(one.memory_bytes)} of its memory"
        evidence.append(Evidence(text, "nvml", one.sm_percent, "%"))
    return tuple(evidence)


def _named(one: Neighbour) -> str:
    return f"{one.name} (pid {one.pid})" if one.name else f"pid {one.pid}"


def core_contention(window: RunFacts, floor: float = 0.0) -> Finding | None:
    """Without a GPU: the time in which the training thread waited for a core that others had. An
    estimate, since other threads that it waits for lose more. Abstains where the kernel does not
    report it."""
    lack = None if window.gpu_present else starved(window)
    if lack is None or lack.by_others is None or lack.by_others < CONTRIBUTOR:
        return None
    share = without_rows(lack.by_others)
    found = cause(
        "contention",
        "cores",
        share,
        f"training waits for a core {percent(share.mean)} of the time: other processes use them",
        core_wait_evidence(window, lack),
        remedies(window, lack),
        floor,
    )
    return replace(found, speedup_is="estimate")
