"""Workers that ask for more cores than there are: too many of them, or each of several threads."""

from math import floor
from typing import Final

from ..code_places import worker_places
from ..findings import Evidence
from ..format import cores, percent
from ..loader import Feeding, all_ready
from ..thresholds import causes as limits
from ..thresholds.hysteresis import ENTER_SHARE
from ..window import RunFacts, StepWindow
from .input_pattern import Explained, cheaper, folded, named, received

OTHER_THREADS: Final = 25.0
"""Percent of a core that a worker's threads use beside the one that makes its batches, from which
they are a library's that computes with several. PyTorch itself has one in a worker; what hands
batches on uses 0 to 3 %. Twelve workers whose NumPy had four threads used 132 % of a core each,
and 94 % of it so, on the 16 cores beside an H200 (one thread in each: 2.9x)."""
ONE_THREAD: Final = (
    "one thread in each worker: OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 (NumPy's, SciPy's), "
    "set before they are imported; cv2.setNumThreads(0) in worker_init_fn (OpenCV's)"
)


def threaded(window: RunFacts, feeding: Feeding) -> Explained | None:
    """Workers that compute with several threads each, of NumPy's or OpenCV's, while the cores have
    no time left: they wait for each other. How much one thread each gives depends on how much of
    that was waiting, which nobody measures: a bound."""
    use, have = window.workers, feeding.cores
    if use is None or not have or (feeding.workers or 0) < 2:
        return None
    other = use.other_threads_percent
    if other is None or other < OTHER_THREADS:
        return None
    shown = queue_for_cores(window, feeding)
    if shown is None and (feeding.workers or 0) * (1 + other / 100) > have:
        shown = cores_full(window)
    if shown is None:
        return None
    text = f"each of {feeding.workers} workers uses {other:.0f}% of a core in threads beside the "
    text += f"one that makes its batches, on {cores(have)}"
    places = folded(worker_places(window))
    return Explained(
        "oversubscribed",
        (Evidence(text, "proc", other, "%"), shown, *named(places, "worker")),
        (ONE_THREAD, cheaper(places[0] if places else None)),
        gain_known=False,
    )


def oversubscribed(window: RunFacts, feeding: Feeding) -> Explained | None:
    """W > 1.5 cores, and workers that are ready wait for a core; where the kernel does not report
    that, the cores are full: by the machine's figure, else by the processes'.

    Where batches are late fewer workers come second: batches cost what they cost, and only what the
    switches took comes back (4 → 2 workers on 2 cores, measured: 0.96 to 1.12x, of a wait of 89 %;
    32 → 16 on 16 cores: 0.85x, of a wait of 77 %, where cheaper batches gave 1.9x). Where they lie
    ready beside a GPU, what fewer give to the thread that launches is not forecast.
    """
    workers, have = feeding.workers, feeding.cores
    if not workers or not have or workers <= limits.OVERSUBSCRIBED * have:
        return None
    known = window.workers is not None and window.workers.run_delay is not None
    shown = queue_for_cores(window, feeding) if known else cores_full(window)
    if shown is None:
        return None
    evidence = [
        Evidence(f"{workers} workers on {cores(have)}", "proc", workers / have, "workers per core"),
        shown,
    ]
    places = folded(worker_places(window))
    evidence += named(places, "worker")
    advice = (
        f"num_workers {workers} → {max(1, floor(have))}: more than one per core only adds "
        "context switches and memory",
        cheaper(places[0] if places else None),
    )
    if isinstance(window, StepWindow) and not window.gpu_present and all_ready(window):
        # No worker is behind: what their batches take of the cores is lost, whoever makes them.
        return Explained("oversubscribed", (received(feeding), *evidence), advice[::-1])
    late = feeding.wait_ns >= ENTER_SHARE * (feeding.wait_ns + feeding.other_ns)
    if late and isinstance(window, StepWindow):
        return Explained("oversubscribed", tuple(evidence), advice[::-1])
    return Explained("oversubscribed", tuple(evidence), advice, gain_known=False)


def queue_for_cores(window: RunFacts, feeding: Feeding) -> Evidence | None:
    """A worker is ready and has no core."""
    delay = None if window.workers is None else window.workers.run_delay
    if delay is None or delay < limits.QUEUES * (feeding.busy or 1.0):
        return None
    return Evidence(f"workers wait for a core {percent(delay)} of the time", "proc", delay)


def cores_full(window: RunFacts) -> Evidence | None:
    """The cores are measured to have no time left."""
    used = cores_used(window)
    if used is None or used < limits.WORKER_CPU_BOUND:
        return None
    return Evidence(f"the cores are {used:.0f}% busy", "proc", used, "%")


def cores_used(window: RunFacts) -> float | None:
    """Percent of the cores that the run may use: the machine's figure, or what its own processes
    use of them, the larger, for in a container the machine has more; None where neither is
    known."""
    known = (window.machine_cpu_percent, own_cores_used(window))
    return max((one for one in known if one is not None), default=None)


def own_cores_used(window: RunFacts) -> float | None:
    """The same of its own processes alone."""
    use = window.workers
    if use is None or use.cpu_percent is None or not window.cores:
        return None
    return (use.count * use.cpu_percent + (window.host.main_cpu_percent or 0.0)) / window.cores
