"""Metrics that are pushed: each destination on a thread of its own, the newest and no queue."""

import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from .metrics import Family

LAST_S: Final = 10.0
"""What the last push may take as the exporter ends."""
REPORT_EVERY: Final = 20
"""A destination that keeps failing is named at its first failure, and at every so many."""

Report = Callable[[str], None]
"""Takes a line for a person."""


class Destination(Protocol):
    """Where metrics are pushed to. All calls come from one thread."""

    name: str

    def open(self) -> None:
        """Connect. Raises whatever its client does."""

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Deliver. Raises whatever its client does."""

    def close(self) -> None:
        """Let go."""


class Push:
    """Delivers to one destination while the exporter goes on: what is new when the one before is
    not delivered yet takes its place."""

    def __init__(self, destination: Destination, report: Report) -> None:
        self._destination = destination
        self._report = report
        self._waiting: queue.Queue[tuple[Sequence[Family], float] | None] = queue.Queue(1)
        self._failed = 0
        """In a row."""
        self.delivered = 0
        self._thread = threading.Thread(target=self._run, name=destination.name, daemon=True)
        self._thread.start()

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Deliver these soon. Never waits."""
        self._put((families, at_unix))

    def close(self) -> None:
        """Deliver what is left, within `LAST_S`."""
        try:
            self._waiting.put(None, timeout=LAST_S)
        except queue.Full:
            return
        self._thread.join(LAST_S)

    def _put(self, what: tuple[Sequence[Family], float]) -> None:
        try:
            self._waiting.put_nowait(what)
        except queue.Full:
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                pass  # just taken
            self._waiting.put_nowait(what)

    def _run(self) -> None:
        is_open = False
        while (what := self._waiting.get()) is not None:
            try:
                if not is_open:
                    self._destination.open()
                    is_open = True
                self._destination.send(*what)
            except Exception as error:  # any of somebody else's client: the next may succeed
                self._fail(error)
                continue
            self.delivered += 1
            if self._failed:
                self._report(f"{self._destination.name}: delivers again")
                self._failed = 0
        if is_open:
            try:
                self._destination.close()
            except Exception as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failed % REPORT_EVERY == 0:
            why = " ".join(str(error).split())[:200] or type(error).__name__
            self._report(f"{self._destination.name}: not delivered: {why}")
        self._failed += 1


def pushes_of(
    report: Report,
    otlp: str | None,
    wandb: str | None,
    mlflow: str | None,
    tensorboard: Path | None,
) -> list[Push]:
    """The pushes that were asked for. Raises UsageError where one's client is not installed, or an
    address is none."""
    destinations: list[Destination] = []
    if otlp is not None:
        from .otlp import Otlp

        destinations.append(Otlp(otlp))
    if wandb is not None:
        from .trackers import WeightsAndBiases

        destinations.append(WeightsAndBiases(wandb))
    if mlflow is not None:
        from .trackers import MlFlow

        destinations.append(MlFlow(mlflow))
    if tensorboard is not None:
        from .trackers import TensorBoard

        destinations.append(TensorBoard(tensorboard))
    return [Push(one, report) for one in destinations]
