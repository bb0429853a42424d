"""The training thread is ready to run and has no core: how often, and who has it then."""

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Final

from .code_places import main_places, reads, share_seen, share_where
from .findings import Evidence
from .format import cores, percent
from .stack_samples import FrameShare
from .statistics import Share, error_of, of_samples
from .step_time import named_ns, spent
from .thresholds.causes import ASLEEP_AWAKE, CONTRADICTS, FORWARD_OF_BACKWARD_ON_CPU
from .thresholds.hysteresis import ENTER_SHARE, Z90_MANY
from .window import RunFacts, StepWindow


def asleep(window: StepWindow) -> float | None:
    """Part of the time, 0 to 1, at the least: a file, a server, a lock, `time.sleep`. None where
    the kernel does not report how long it waited for a core.

    Where the kernel does not report the thread's CPU time, the process's bounds it from above. A
    thread that launches kernels, or waits for the GPU, does not sleep: CUDA spins. But autograd
    walks a graph of CUDA tensors on a thread of its own for the device, and the one that called
    `backward()` sleeps meanwhile: seen on an H200, 56% of the time at 57% in backward. Samples show
    where else it is called: `autograd.grad` within a forward, 42% of the time at 8% of a core.
    """
    ran = window.host.thread_cpu
    if ran is None and window.host.main_cpu_percent is not None:
        ran = window.host.main_cpu_percent / 100
    if ran is None or window.host.run_delay is None:
        return None
    total = spent(window.steps)
    if total.wall_ns <= 0:
        return None
    claimed_ns = total.data_ns + total.startup_ns + total.paused_ns + named_ns(window.steps)
    claimed = claimed_ns / total.wall_ns
    if window.gpu_present:
        walked = share_seen(window, lambda one: one.phase == "backward").mean
        claimed += max(sum(row.backward_ns for row in window.steps) / total.wall_ns, walked)
    return max(0.0, 1 - ran - window.host.run_delay - claimed)


def seen_with_sleep(window: StepWindow, which: Callable[[FrameShare], bool]) -> Share:
    """The part of the training thread's samples in such places, with its 90 % interval. How long
    the thread sleeps the kernel measures, and samples only show where: 57 of them met a sleep of
    67 % of the time in 79 %. By the samples alone where they show no sleep in such places, or where
    the thread slept for less than half of what they show: those lines compute."""
    seen, slept, places = share_seen(window, which), asleep(window), main_places(window)
    waiting = share_where(places, reads)
    there = share_where(places, lambda one: reads(one) and which(one))
    if window.gpu_present or window.stacks is None or slept is None or not there:
        return seen
    if slept < ASLEEP_AWAKE * waiting or waiting >= 1.0:
        return seen
    samples = window.stacks.main_samples
    asleep_there = of_samples(there / waiting, waiting * samples)
    awake = (seen.mean - there) / (1 - waiting)
    awake_there = of_samples(awake, (1 - waiting) * samples)
    mean = slept * asleep_there.mean + (1 - slept) * awake
    below, above = (
        hypot(slept * (asleep_there.mean - one), (1 - slept) * (awake - other))
        for one, other in (
            (asleep_there.low, awake_there.low),
            (asleep_there.high, awake_there.high),
        )
    )
    return Share(mean, max(0.0, mean - below), min(1.0, mean + above))


def seen_before_the_net(window: StepWindow, which: Callable[[FrameShare], bool]) -> Share:
    """The same in a loop without a loader, on a CPU: from one update to the next backward all is
    booked as forward, of which the backward shows how much the net's own takes. Two measurements of
    one share, each by the inverse of its variance: 38 samples know a half to 8 points, the marks
    know it to 7. By samples alone where the two contradict each other: of a frozen net the
    backward shows nothing, and evaluations may be booked as forward too."""
    seen = seen_with_sleep(window, which)
    total = spent(window.steps)
    if window.gpu_present or window.sees_loading or not seen.mean or total.wall_ns <= 0:
        return seen
    ratio, spread = FORWARD_OF_BACKWARD_ON_CPU
    backward = sum(row.backward_ns for row in window.steps) / total.wall_ns
    beside = sum(row.forward_ns for row in window.steps) / total.wall_ns - ratio * backward
    error, sampled = spread * backward, error_of(seen.mean, seen.low, seen.high)
    if not error or not sampled or abs(beside - seen.mean) > CONTRADICTS * hypot(error, sampled):
        return seen
    weights = sampled**-2, error**-2
    mean = (seen.mean * weights[0] + beside * weights[1]) / sum(weights)
    half = Z90_MANY / sqrt(sum(weights))
    return Share(mean, max(0.0, mean - half), min(1.0, mean + half))


@dataclass(frozen=True, slots=True)
class Starved:
    """Parts of the time, 0 to 1. What neither the quota nor others cause, the run does itself."""

    share: float
    """The whole wait for a core: what the step would be shorter by, were there always one."""
    by_quota: float
    by_others: float | None
    """None where the others' use is unknown."""

    @property
    def by_itself(self) -> float:
        """What is left: its own other threads and processes had the cores."""
        return max(0.0, self.share - self.by_quota - (self.by_others or 0.0))


def starved(window: RunFacts) -> Starved | None:
    """None where the kernel does not report how long the thread waited.

    A thread that waits for a core waits for those that run: the wait is shared out by the CPU time
    of the others and of the run's own other threads and processes.
    """
    waits = window.host.run_delay
    if waits is None:
        return None
    by_quota = min(waits, window.host.cpu_throttled or 0.0)
    others = window.host.others_cores
    if others is None or window.host.beside_cores is None:
        return Starved(waits, by_quota, None)
    running = others + window.host.beside_cores
    by_others = (waits - by_quota) * others / running if running else 0.0
    # Nobody holds a core for longer than it runs.
    return Starved(waits, by_quota, min(others, by_others))


def worker_cores(window: RunFacts) -> float | None:
    """Cores that the loader's workers use together; None where that is unknown."""
    use = window.workers
    return None if use is None or use.cpu_percent is None else use.count * use.cpu_percent / 100


def taken_by_workers(window: RunFacts) -> float:
    """Part of the time, 0 to 1, in which the training was ready and the loader's workers had a core
    of its: by what its thread waited for one, or by what its other threads did. 0 where neither is
    known."""
    return max(_by_its_wait(window), taken_of_threads(window))


def taken_of_threads(window: RunFacts) -> float:
    """The same of a net on a CPU with as many threads as cores. A worker that runs stops one of
    them, and the others spin until that one has done its part: a worker's CPU time is lost to the
    step, as if it ran between two. Scheduling shares that core, so that no more than half of the
    time is lost in which the training waits for no batch, and from one of the net's other threads
    no more than that one has itself: nothing where its operations are too small for a second
    thread. What no process used of the cores the workers had for nothing. 0 where the net has fewer
    threads, or any of that is unknown.

    SimCLR on two cores: two workers compute 130 ms a batch, a step takes 310 to 355 ms, and with
    batches in memory 206 ms; by the training thread's own wait they held it up 6 % of the time.
    Batches of four small pictures: 1.05 ms a batch, beside 1.1 ms to receive it, and 3.4 ms for
    1.4 ms."""
    settings, used, have = window.settings, worker_cores(window), window.cores
    if window.gpu_present or settings is None or settings.threads is None or not used or not have:
        return 0.0
    if have < 2 or settings.threads < have or window.host.main_cpu_percent is None:
        return 0.0
    if window.host.others_cores is None:
        return 0.0
    idle = max(0.0, have - window.host.main_cpu_percent / 100 - used - window.host.others_cores)
    total = spent(window.steps) if isinstance(window, StepWindow) else None
    waits = total.data_ns / total.wall_ns if total is not None and total.wall_ns > 0 else 0.0
    most = MOST_LOST_TO_A_SHARE * max(0.0, 1.0 - waits)
    if (beside := other_threads(window)) is not None:
        most = min(most, beside / (settings.threads - 1))
    return min(most, max(0.0, used - idle))


def other_threads(window: RunFacts) -> float | None:
    """Cores that the process's threads beside the training one use; None where that is unknown."""
    if window.host.thread_cpu is None or window.host.main_cpu_percent is None:
        return None
    return max(0.0, window.host.main_cpu_percent / 100 - window.host.thread_cpu)


MOST_LOST_TO_A_SHARE: Final = 0.5
"""A core that two threads want is shared equally (Linux, equal weights)."""


def _by_its_wait(window: RunFacts) -> float:
    """The workers' part, by CPU time, of the training thread's wait that the run causes itself."""
    lack, used, beside = starved(window), worker_cores(window), window.host.beside_cores
    if lack is None or lack.by_others is None or not used or not beside:
        return 0.0
    return lack.by_itself * min(1.0, used / beside)


def core_account(window: RunFacts) -> Evidence | None:
    """ "of 2 cores the workers use 1.4, training 0.5, other processes 0.1"; None without
    workers."""
    used = worker_cores(window)
    if used is None or not window.cores or window.host.main_cpu_percent is None:
        return None
    text = f"of {cores(window.cores)} the workers use {used:.1f}, training "
    text += f"{window.host.main_cpu_percent / 100:.1f}"
    if window.host.others_cores is not None:
        text += f", other processes {window.host.others_cores:.1f}"
    return Evidence(text, "proc", used, "cores")


def fewer_workers(window: RunFacts) -> str | None:
    """Workers that leave the training a core; None where it has one."""
    workers = window.loaders[0].num_workers if window.loaders else None
    if not workers or not window.cores or workers < window.cores:
        return None
    leaves = max(1, int(window.cores) - 1)
    if leaves >= workers:
        return None
    return f"num_workers {workers} → {leaves}: leave the training a core of {cores(window.cores)}"


def without_a_core(share: float) -> Evidence:
    """The training thread's wait for one, a part of the time."""
    text = f"training thread ready but without a core {percent(share)} of the time"
    return Evidence(text, "proc", share)


def core_wait_evidence(window: RunFacts, lack: Starved) -> tuple[Evidence, ...]:
    """What shows it."""
    found = [without_a_core(lack.share)]
    if lack.by_quota:
        text = f"its CPU quota throttles the process {percent(lack.by_quota)} of the time"
        found.append(Evidence(text, "proc", lack.by_quota))
    if lack.by_others and window.host.others_cores is not None:
        have = f" of {cores(window.cores)}" if window.cores else ""
        text = f"other processes used {window.host.others_cores:.1f}{have} meanwhile"
        found.append(Evidence(text, "proc", window.host.others_cores, "cores"))
    return tuple(found)


def remedies(window: RunFacts, lack: Starved) -> tuple[str, ...]:
    """What to do about it, the largest part first."""
    by_others = lack.by_others or 0.0
    have = cores(window.cores) if window.cores else "cores"
    quota = f"raise its CPU quota of {have}: cgroup cpu.max, or the container's --cpus"
    apart = f"give this run its {have} alone: move other processes away, or use a cpuset"
    fewer = "use fewer processes and threads: they take the training thread's core"
    if taken_by_workers(window) >= lack.share / 2:
        fewer = fewer_workers(window) or "cheaper batches: the workers take the training's core"
    parts = ((lack.by_quota, quota), (by_others, apart))
    own = lack.by_itself if lack.by_others is not None else 0.0
    by_share = sorted((*parts, (own, fewer)), key=lambda part: -part[0])
    return (
        *(advice for part, advice in by_share if part >= lack.share / 4),
        *thread_advice(window),
    )


def thread_advice(window: RunFacts) -> tuple[str, ...]:
    """Threads of one product wait for the last of them, and spin meanwhile: on two cores that
    others used as well, one thread made 7 to 22 times the steps of two (measured). The loader's
    workers are such others, also where they use little: of two threads beside them one was 1.01 to
    1.7 times as fast where the training thread waited for a core 10 to 24 % of the time (eight
    turns of four public scripts on two cores, 1.1 in the median)."""
    settings, have = window.settings, window.cores
    if window.gpu_present or settings is None or settings.threads is None or have is None:
        return ()
    used, lack = worker_cores(window) or 0.0, starved(window)
    free = max(1, round(have - (window.host.others_cores or 0.0) - used))
    if used and lack is not None and lack.by_itself >= ENTER_SHARE:
        free = min(free, max(1, int(have) - 1))
    if settings.threads <= free:
        return ()
    return (
        f"until then torch.set_num_threads({free}): {settings.threads} threads on fewer cores wait "
        "for each other",
    )
