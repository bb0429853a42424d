"""The workers wait: for a disk, a network share, a server; their cores are idle."""

from tui.verdict import policy
from tui.verdict.feeding import Feeding
from tui.verdict.figures import cores, mib, ms, percent
from tui.verdict.findings import Evidence
from tui.verdict.places import reads, share_where, worker_places
from tui.verdict.rules.input_explained import Explained, cheaper, gain, named
from tui.verdict.window import Window, WorkerUse


def storage(window: Window, feeding: Feeding) -> Explained | None:
    """Worker CPU below 50 %, and no core that they wait for: they wait for a disk or a server, or,
    where nobody sees them read, for what the stacks name, as a lock."""
    use = window.workers
    if not feeding.workers or use is None or use.cpu_percent is None:
        return None
    busy = feeding.busy if feeding.busy else 1.0
    if use.cpu_percent >= policy.WORKER_CPU_WAITS * busy:
        return None
    places = worker_places(window)
    reading = share_where(places, reads)
    if _queue_for_a_core(window, use, busy, reading):
        return None
    text = (
        f"workers make a batch {percent(busy)} of the time and use {use.cpu_percent:.0f}% of a core"
    )
    disk = use.disk_wait_share or 0.0
    if disk >= policy.READ_SHARE * busy:
        text += f", in {percent(disk)} of the looks they wait for a disk"
    if use.read_bytes_s:
        text += f", they read {mib(use.read_bytes_s)} a second"
    shown = places
    more = feeding.plan(policy.STORAGE_WORKERS_PER_CORE)
    unseen = not places and (use.read_bytes_s or 0.0) >= policy.READ_BYTES_S
    if unseen or max(disk, reading) >= policy.READ_SHARE * busy:
        shown = tuple(filter(reads, places)) or places
        advice = [
            "keep a copy on a local disk or in memory, or pack many small files into a few large",
        ]
    else:
        advice = [cheaper(places[0] if places else None)]
    if more is not None and more.workers > feeding.workers and feeding.make_ns is not None:
        have = f" of {cores(feeding.cores)}" if feeding.cores else ""
        # By the host's clock: what the GPU idles beside the wait is no work that hides a batch.
        rest_ns = feeding.batch_ns - feeding.wait_ns
        hides = rest_ns >= policy.MOST_OF_THE_GAIN * more.batch_ns
        advice.insert(
            0 if hides else 1,
            f"num_workers {feeding.workers} → {more.workers}, {gain(feeding, more.batch_ns)}: they "
            f"wait {ms(feeding.make_ns)} a batch and use little{have}",
        )
    evidence = (Evidence(text, "proc", use.cpu_percent, "%"), *named(shown, "worker"))
    return Explained("storage", evidence, tuple(advice))


def _queue_for_a_core(window: Window, use: WorkerUse, busy: float, reading: float) -> bool:
    """Workers that are ready to run wait for nothing but a core. Where the kernel does not tell
    that, a full machine does, unless the stacks see them read."""
    if use.run_delay is not None and use.cpu_percent is not None:
        wants = use.cpu_percent + 100 * use.run_delay
        return wants >= policy.WORKER_CPU_WAITS * busy
    full = (window.machine_cpu_percent or 0.0) > policy.MACHINE_FULL
    return full and reading < policy.READ_SHARE * busy
