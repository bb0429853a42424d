"""The training thread sleeps: it neither runs, nor waits for a core, nor for a batch."""

from tui.verdict.spent import spent
from tui.verdict.window import Window


def asleep(window: Window) -> float | None:
    """Part of the time, 0 to 1, at the least: a file, a server, a lock, `time.sleep`. None where
    the kernel does not tell how long it waited for a core.

    Where the kernel does not tell the thread's CPU time, the process's bounds it from above. A
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
    claimed_ns = total.data_ns + total.startup_ns + total.aside_ns
    if window.gpu_present:
        claimed_ns += sum(row.backward_ns for row in window.steps)
    claimed = claimed_ns / total.wall_ns
    return max(0.0, 1 - ran - window.run_delay - claimed)
