"""The processes: the launcher, the ranks, the workers, and what they come to."""

from collections.abc import Sequence
from typing import Final

from tui.observations import ProcessUse
from tui.report.lines import joined, labelled
from tui.snapshot import Snapshot
from tui.wording import numbers
from tui.wording.processes import cores_used, cores_words, state_of

MOST_ROWS: Final = 16
_MIB: Final = 1024 * 1024


def process_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The cores, a row for each process, and the sum of the target's own."""
    own = snapshot.processes
    if not own:
        return []
    around = snapshot.surroundings.around if snapshot.surroundings else ()
    everyone = (*around, *own)
    cores = (*cores_words(snapshot), "in the last second")
    rows = [joined(cores), *(_row(use) for use in everyone[:MOST_ROWS])]
    if len(everyone) > MOST_ROWS:
        rows.append(f"and {len(everyone) - MOST_ROWS} more")
    return labelled("procs", [*rows, _sum(own)], width)


def _row(use: ProcessUse) -> str:
    """ "worker 48231 · 99% of a core · 563 MiB PSS · reads 21.0 MiB/s · 1 thread · running"."""
    name = use.role if use.role in ("main", "worker") else use.name
    rank = "" if use.rank is None else f"rank {use.rank}"
    said = [f"{name} {use.pid}", rank, _cores(use.cpu_percent)]
    if use.thread_cpu_percent is not None:
        said.append(f"main thread {use.thread_cpu_percent:.0f}%")
    if use.pin_cpu_percent is not None:
        said.append(f"pin thread {use.pin_cpu_percent:.0f}%")
    said.append(f"{numbers.size(_held_bytes(use))} {'RSS' if use.pss_bytes is None else 'PSS'}")
    return joined([*said, *_moved([use]), _threads(use.threads), state_of(use)[0]])


def _sum(own: Sequence[ProcessUse]) -> str:
    """Sums of resident sizes count what is shared many times."""
    used = cores_used(own)
    bound = "≤ " if len(own) > 1 and any(use.pss_bytes is None for use in own) else ""
    held = f"{bound}{numbers.size(sum(_held_bytes(use) for use in own))}"
    cores = _cores(None if used is None else 100 * used)
    threads = _threads(sum(use.threads for use in own))
    return joined([f"{len(own)} in all", cores, held, *_moved(own), threads])


def _held_bytes(use: ProcessUse) -> int:
    return use.rss_bytes if use.pss_bytes is None else use.pss_bytes


def _cores(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f}% of a core"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _moved(uses: Sequence[ProcessUse]) -> list[str]:
    """What is read and written, where that is told and any."""
    read = sum(use.read_bytes_s or 0.0 for use in uses)
    wrote = sum(use.write_bytes_s or 0.0 for use in uses)
    told = (("reads", read), ("writes", wrote))
    return [f"{word} {rate / _MIB:,.1f} MiB/s" for word, rate in told if rate]
