"""The threads of a training process that pin batches, which torch names."""

from pathlib import Path
from typing import Final

from tui.sources.scheduling import thread_times

NAME: Final = "pt_data_pin"
FIND_NS: Final = 10_000_000_000
"""Between two searches: each reads the name of every thread, 10 us apiece."""


class PinThreads:
    """What they use of a core. A loader that begins again has a new one."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = proc
        self._found_ns: int | None = None
        self._threads: list[int] = []
        self._before: tuple[int, dict[int, int]] | None = None

    def percent(self, now_ns: int) -> float | None:
        """Of one core since the last call, all of them together; None without one, and where there
        was none before."""
        if self._found_ns is None or now_ns - self._found_ns >= FIND_NS:
            self._found_ns, self._threads = now_ns, self._find()
        ran = {
            thread: times.ran_ns
            for thread in self._threads
            if (times := thread_times(self._pid, self._proc, thread)).ran_ns is not None
        }
        before, self._before = self._before, (now_ns, ran)
        if before is None or now_ns <= before[0]:
            return None
        used = [ns - before[1][thread] for thread, ns in ran.items() if thread in before[1]]
        return 100 * sum(used) / (now_ns - before[0]) if used else None

    def _find(self) -> list[int]:
        found: list[int] = []
        try:
            tasks = list((self._proc / str(self._pid) / "task").iterdir())
        except OSError:
            return found
        for task in tasks:
            try:
                if (task / "comm").read_text().strip() == NAME:
                    found.append(int(task.name))
            except OSError:
                continue  # it ended while we looked
        return found
