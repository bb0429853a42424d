"""The target's processes, and what the DataLoader workers did over the last minute."""

from collections import deque
from typing import Final

from tui.observations import ProcessesSeen, ProcessUse
from tui.verdict.window import WorkerUse

HELD: Final = 60
"""A minute at one look a second: the window of the verdict."""
CURRENT_LOOKS: Final = 5
"""The machine's and the main process's use are means of the last few looks."""


class ProcessBook:
    """The last looks at the process tree."""

    def __init__(self) -> None:
        self._looks: deque[ProcessesSeen] = deque(maxlen=HELD)

    def seen(self, seen: ProcessesSeen) -> None:
        """Take one look."""
        self._looks.append(seen)

    @property
    def processes(self) -> tuple[ProcessUse, ...]:
        """As they were last seen."""
        return self._looks[-1].processes if self._looks else ()

    @property
    def cores(self) -> float | None:
        """Cores that the target may use."""
        return self._looks[-1].cores if self._looks else None

    @property
    def machine_cpu_percent(self) -> float | None:
        """Of all cores together, a mean over the last looks."""
        looks = list(self._looks)[-CURRENT_LOOKS:]
        return _mean([look.machine_cpu_percent for look in looks])

    @property
    def main_cpu_percent(self) -> float | None:
        """The training process, of one core, a mean over the window."""
        return _mean([p.cpu_percent for look in self._looks for p in look.processes if _main(p)])

    def worker_use(self) -> WorkerUse | None:
        """The workers over the window; None where there are none now."""
        count = sum(process.role == "worker" for process in self.processes)
        if not count:
            return None
        looks = [[p for p in look.processes if p.role == "worker"] for look in self._looks]
        rows = [process for look in looks for process in look]
        read = [
            sum(process.read_bytes_s or 0.0 for process in look)
            for look in looks
            if any(process.read_bytes_s is not None for process in look)
        ]
        return WorkerUse(
            count=count,
            cpu_percent=_mean([process.cpu_percent for process in rows]),
            disk_wait_share=sum(p.status == "D" for p in rows) / len(rows),
            read_bytes_s=_mean(list(read)),
        )


def _main(process: ProcessUse) -> bool:
    return process.role == "main"


def _mean(values: list[float | None] | list[float]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
