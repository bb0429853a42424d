"""The training thread is ready to run and has no core: how often, and who has it then."""

from dataclasses import dataclass

from .findings import Evidence
from .format import cores, percent
from .step_time import spent
from .window import RunFacts, StepWindow


def asleep(window: StepWindow) -> float | None:
    """Part of the time, 0 to 1, at the least: a file, a server, a lock, `time.sleep`. None where
    the kernel does not report how long it waited for a core.

    Where the kernel does not report the thread's CPU time, the process's bounds it from above. A
    thread that launches kernels, or waits for the GPU, does not sleep: CUDA spins. But autograd
    walks a graph of CUDA tensors on a thread of its own for the device, and the one that called
    `backward()` sleeps meanwhile: seen on an H200, 56% of the time at 57% in backward.
    """
    ran = window.thread_cpu
    if ran is None and window.main_cpu_percent is not None:
        ran = window.main_cpu_percent / 100
    if ran is None or window.run_delay is None:
        return None
    total = spent(window.steps)
    if total.wall_ns <= 0:
        return None
    claimed_ns = total.data_ns + total.startup_ns + total.paused_ns
    if window.gpu_present:
        claimed_ns += sum(row.backward_ns for row in window.steps)
    claimed = claimed_ns / total.wall_ns
    return max(0.0, 1 - ran - window.run_delay - claimed)


@dataclass(frozen=True, slots=True)
class Starved:
    """Parts of the time, 0 to 1. What neither the quota nor others cause, the run does itself."""

    share: float
    """The whole wait for a core: what the step would be shorter by, were there always one."""
    by_quota: float
    by_others: float | None
    """None where the others' use is unknown."""


def starved(window: RunFacts) -> Starved | None:
    """None where the kernel does not report how long the thread waited.

    A thread that waits for a core waits for those that run: the wait is shared out by the CPU time
    of the others and of the run's own other threads and processes.
    """
    waits = window.run_delay
    if waits is None:
        return None
    by_quota = min(waits, window.cpu_throttled or 0.0)
    others = window.others_cores
    if others is None or window.beside_cores is None:
        return Starved(waits, by_quota, None)
    running = others + window.beside_cores
    by_others = (waits - by_quota) * others / running if running else 0.0
    # Nobody holds a core for longer than it runs.
    return Starved(waits, by_quota, min(others, by_others))


def core_wait_evidence(window: RunFacts, lack: Starved) -> tuple[Evidence, ...]:
    """What shows it."""
    text = f"training thread ready but without a core {percent(lack.share)} of the time"
    found = [Evidence(text, "proc", lack.share)]
    if lack.by_quota:
        text = f"its CPU quota throttles the process {percent(lack.by_quota)} of the time"
        found.append(Evidence(text, "proc", lack.by_quota))
    if lack.by_others and window.others_cores is not None:
        have = f" of {cores(window.cores)}" if window.cores else ""
        text = f"other processes used {window.others_cores:.1f}{have} meanwhile"
        found.append(Evidence(text, "proc", window.others_cores, "cores"))
    return tuple(found)


def remedies(window: RunFacts, lack: Starved) -> tuple[str, ...]:
    """What to do about it, the largest part first."""
    by_others = lack.by_others or 0.0
    have = cores(window.cores) if window.cores else "cores"
    quota = f"raise its CPU quota of {have}: cgroup cpu.max, or the container's --cpus"
    apart = f"give this run its {have} alone: move other processes away, or use a cpuset"
    fewer = "use fewer processes and threads: they take the training thread's core"
    parts = ((lack.by_quota, quota), (by_others, apart))
    own = lack.share - lack.by_quota - by_others if lack.by_others is not None else 0.0
    by_share = sorted((*parts, (own, fewer)), key=lambda part: -part[0])
    return (*(advice for part, advice in by_share if part >= lack.share / 4), *_threads(window))


def _threads(window: RunFacts) -> tuple[str, ...]:
    """Threads of one product wait for the last of them, and spin meanwhile: on two cores that
    others used as well, one thread made 7 to 22 times the steps of two (measured)."""
    settings, have = window.settings, window.cores
    if window.gpu_present or settings is None or settings.threads is None or have is None:
        return ()
    free = max(1, round(have - (window.others_cores or 0.0)))
    if settings.threads <= free:
        return ()
    return (
        f"until then torch.set_num_threads({free}): {settings.threads} threads on fewer cores wait "
        "for each other",
    )
