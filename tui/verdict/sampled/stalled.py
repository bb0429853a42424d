"""The main thread's stack does not move, and nothing else does either."""

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import ms
from tui.verdict.findings import Evidence, Finding
from tui.verdict.sampled.felt import sampled_of
from tui.verdict.standing_workers import look_at, shows, where
from tui.verdict.window import Still, Window


def stalled(window: Window) -> Finding | None:
    """A long step uses cores or the GPU; a long wait for data is one in which workers do. What uses
    nothing for this long hangs."""
    still = sampled_of(window).still
    if still is None or window.ended or not _nothing_runs(still):
        return None
    idle = still.gpu_busy is None or still.gpu_busy < policy.STILL_GPU
    if still.age_s < (policy.STILL_S if idle else policy.STILL_BESIDE_GPU_S):
        return None
    age = ms(still.age_s * 1e9)
    evidence = [
        Evidence(
            f"the main thread for {age}: {' → '.join(still.stack)}", "py-spy", still.age_s, "s"
        ),
        Evidence("neither it nor its processes use a core", "proc", still.beside_cores, "cores"),
    ]
    workers = still.workers if still.phase == "data" else ()
    evidence += shows(workers)
    held = where(workers)
    here = f", {held}" if held else f" in {still.frame}"
    doing = "waiting for data" if still.phase == "data" else still.phase
    advice = look_at(held) if held else f"look at what the main thread waits for in {still.frame}"
    headline = f"nothing moves for {age}: {doing}{here}"
    return plain("stalled", None, "critical", headline, tuple(evidence), (advice,))


def _nothing_runs(still: Still) -> bool:
    if still.thread_cpu is None or still.beside_cores is None:
        return False
    return still.thread_cpu < policy.STILL_THREAD and still.beside_cores < policy.STILL_CORES
