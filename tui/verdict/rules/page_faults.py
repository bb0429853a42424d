"""Memory on a CPU that is given back to the kernel in each step and asked for again in the next."""

from dataclasses import replace
from math import inf
from typing import Final

from ..findings import Evidence, Finding, Forecast
from ..format import percent
from ..scoring import cause, speedup_of
from ..statistics import Share, beyond, of_samples
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow, Window

KEEP: Final = "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184"
"""Of glibc's allocator: no block is mapped apart, and the heap's end is given back from 16 GiB."""
TICKS_S: Final = 100
"""The kernel samples whether a thread is in it so often or oftener (CONFIG_HZ)."""
MOST_A_FAULT_S: Final = 4e-6
"""A page that is found, filled with zeros, mapped, and later taken away again: 2.1 to 3.2 us on a
virtual machine (measured), less where no hypervisor walks a second table. Kernel time that the
faults do not explain at this price is something else's: files, pipes, locks."""
A_COPY_S: Final = 3e-6
"""The same of a page that is copied after a fork. A run that forks in each step and writes to all
of its memory: 1.5x by the wait alone, 2.2x with 79,000 copies a second, and 2.5x measured."""
PAGE_BYTES: Final = 4096
LOST: Final = 0.07
MOST: Final = 2.0
MOST_BACK: Final = 0.9
"""So much of the time may not come back after all, so many times the share may, and no more than
this. On two cores, of shares up to 8 %, the setting gave 0.94 to 1.16x in six public scripts, 1.02x
in the middle; of 12 % 1.05 and 1.07x in two; of 12 to 40 % 1.1 to 1.8x in eight. The faults of an
operation's other threads, and caches that zeros fill, come with the training thread's own."""


def page_faults(window: Window, explained: float = 0.0) -> Finding | None:
    """glibc's allocator gives memory back to the kernel as soon as the end of its heap is free, or
    a block of more than 32 MiB. A tensor that each step makes anew is then made of new pages, each
    of which the kernel fills with zeros as it is first touched. The share is the training thread's
    time in the kernel, as far as its faults explain it. What a GPU's tensors are made of is the
    caching allocator's. `explained`: the part of the time of a cause that makes large tensors which
    need not be, and so the faults."""
    taken, faults = window.host.in_kernel, window.host.page_faults_s
    if window.gpu_present or taken is None or not faults or not window.spans:
        return None
    seconds = (window.spans[-1].end_ns - window.spans[0].start_ns) / 1e9
    kept = max(0.0, 1.0 - _by_forks_s(window, seconds) / faults)
    share = of_samples(min(taken, faults * MOST_A_FAULT_S) * kept, TICKS_S * seconds)
    share = beyond(share, explained)
    if share.mean < CONTRIBUTOR:
        return None
    asked = f"{faults:,.0f} pages a second are new to the training thread"
    found = cause(
        "allocator",
        "page-faults",
        share,
        f"memory is given back and asked for again: {percent(share.mean)} of each step",
        (
            Evidence(asked, "proc", faults, "pages/s"),
            Evidence(f"it is in the kernel {percent(taken)} of the time", "proc", taken),
        ),
        (
            f"{KEEP} in its environment: what is freed stays with the process for the next step",
            "or preload jemalloc or tcmalloc (LD_PRELOAD), which keep it as well",
        ),
    )
    return replace(found, speedup_is="estimate", forecast=_forecast(share))


def of_forks(window: StepWindow) -> float:
    """Part of the time, 0 to 1, in which pages are copied that the training writes to after a fork,
    wherever in a step that is: all that has not changed since the fork before is shared again."""
    taken, faults = window.host.in_kernel, window.host.page_faults_s
    if window.gpu_present or taken is None or not faults or not window.spans:
        return 0.0
    seconds = (window.spans[-1].end_ns - window.spans[0].start_ns) / 1e9
    part = min(1.0, _by_forks_s(window, seconds) / faults)
    return min(taken, faults * A_COPY_S) * part


def _by_forks_s(window: Window, seconds: float) -> float:
    """Faults a second at the most that no allocator keeps it from: where a process forks, for its
    loader's workers, it gets every page anew that it writes to next. All its memory for each start
    of workers; without a probe nobody counts those."""
    use = window.workers
    if use is None or not window.memory:
        return 0.0
    if not isinstance(window, StepWindow):
        return inf if use.exited else 0.0
    starts = sum(
        (row.startup_ns > 0) + (row.evaluation_startup_ns + row.shared_startup_ns > 0)
        for row in window.steps
    )
    return starts * window.memory[-1].bytes / PAGE_BYTES / seconds


def _forecast(share: Share) -> Forecast:
    low, high = max(0.0, share.low - LOST), min(MOST_BACK, MOST * share.high)
    return Forecast(speedup_of(share.mean), speedup_of(low), speedup_of(high))
