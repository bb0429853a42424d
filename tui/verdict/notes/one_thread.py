"""One thread, on a machine with many cores that idle."""

from tui.verdict import policy
from tui.verdict.figures import cores
from tui.verdict.findings import Note
from tui.verdict.window import Window


def one_thread(window: Window) -> Note | None:
    """Of use only to a net that computes on the CPU, and where nobody else needs the cores."""
    settings, machine = window.settings, window.machine_cpu_percent
    if settings is None or settings.threads != 1 or settings.parameter_device != "cpu":
        return None
    if window.cores is None or window.cores < 2 or machine is None:
        return None
    if machine >= 100 * policy.IDLE_CORES:
        return None
    idle = (1 - machine / 100) * window.cores
    return Note(
        f"one thread on {cores(window.cores)}: torch.set_num_threads({int(window.cores)})",
        f"{idle:.1f} of them are idle",
        "proc",
    )
