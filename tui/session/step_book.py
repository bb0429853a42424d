"""The steps a session holds."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from probe.wire.messages import Step

HELD_ROWS: Final = 8192
"""About 7 MB. The probe sends at most 500 rows a second: 16 s of the fastest loop, and more than
two hours of steps of one second."""
SHOWN_ROWS: Final = 200
"""`Snapshot.recent`: what a face can draw one by one."""

RECENT_ROWS: Final = 500
"""`Window.all_recent`: room for several checkpoints or evaluations of a run that has them often."""


class StepBook:
    """Rows in time order, each once: a reconnection sends the last minutes again."""

    def __init__(self) -> None:
        self.total = 0
        """Steps since the probe was armed."""
        self._rows: deque[Step] = deque(maxlen=HELD_ROWS)

    def add(self, steps: Sequence[Step]) -> list[Step]:
        """Take rows; returns those that are new. Told apart by time: numbers begin again when a
        program uninstalls the probe and installs it once more."""
        fresh: list[Step] = []
        newest_ns = self._rows[-1].end_ns if self._rows else 0
        for step in steps:
            if step.start_ns < newest_ns or step.count < 1 or step.end_ns < step.start_ns:
                continue
            newest_ns = step.end_ns
            fresh.append(step)
        self._rows.extend(fresh)
        if fresh:
            self.total = fresh[-1].number
        return fresh

    @property
    def newest(self) -> Step | None:
        """The last step that ended."""
        return self._rows[-1] if self._rows else None

    def last(self, rows: int) -> tuple[Step, ...]:
        """The newest `rows` rows, oldest first."""
        newest_first = tuple(islice(reversed(self._rows), rows))
        return newest_first[::-1]

    def all(self) -> tuple[Step, ...]:
        """Every row that is held, oldest first."""
        return tuple(self._rows)

    def after(self, end_ns: int) -> tuple[Step, ...]:
        """Rows that ended after a moment, oldest first."""
        rows: list[Step] = []
        for step in reversed(self._rows):
            if step.end_ns <= end_ns:
                break
            rows.append(step)
        return tuple(reversed(rows))
