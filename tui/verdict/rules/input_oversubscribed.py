"""More workers than cores: they take turns, and take the training's cores."""

from math import floor

from tui.verdict import policy
from tui.verdict.feeding import Feeding
from tui.verdict.figures import cores, percent
from tui.verdict.findings import Evidence
from tui.verdict.places import worker_places
from tui.verdict.rules.input_explained import Explained, cheaper, named
from tui.verdict.window import Window


def oversubscribed(window: Window, feeding: Feeding) -> Explained | None:
    """W > 1.5 cores, and workers that are ready wait for a core; where the kernel does not tell
    that, the cores are full: by the machine's figure, else by the processes'.

    What fewer workers give is not foretold: batches cost what they cost, and only what the switches
    took comes back (4 → 2 workers on 2 cores, measured: 0.96 to 1.12x, of a wait of 89 %).
    """
    workers, have = feeding.workers, feeding.cores
    if not workers or not have or workers <= policy.OVERSUBSCRIBED * have:
        return None
    shown = _queue(window, feeding) if _delay(window) is not None else _full(window, workers, have)
    if shown is None:
        return None
    evidence = [
        Evidence(f"{workers} workers on {cores(have)}", "proc", workers / have, "workers a core"),
        shown,
    ]
    places = worker_places(window)
    evidence += named(places, "worker")
    advice = (
        f"num_workers {workers} → {max(1, floor(have))}: more than one a core only adds switches "
        "and memory",
        cheaper(places[0] if places else None),
    )
    return Explained("oversubscribed", tuple(evidence), advice, foretold=False)


def _delay(window: Window) -> float | None:
    return None if window.workers is None else window.workers.run_delay


def _queue(window: Window, feeding: Feeding) -> Evidence | None:
    """A worker is ready and has no core."""
    delay = _delay(window) or 0.0
    if delay < policy.QUEUES * (feeding.busy or 1.0):
        return None
    return Evidence(f"a worker waits for a core {percent(delay)} of the time", "proc", delay)


def _full(window: Window, workers: int, have: float) -> Evidence | None:
    """The cores have no time left."""
    used = window.machine_cpu_percent
    if used is None and window.workers is not None and window.workers.cpu_percent is not None:
        used = (workers * window.workers.cpu_percent + (window.main_cpu_percent or 0.0)) / have
    if used is None or used < policy.WORKER_CPU_BOUND:
        return None
    return Evidence(f"the cores are {used:.0f}% used", "proc", used, "%")
