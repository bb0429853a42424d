"""The picture of a process that runs now: what the screen and the other faces look at."""

from typing import Final

from tui import clock as real_clock
from tui.collect import Clock, Collector
from tui.session.store import Session
from tui.snapshot import Snapshot

STOPPED_NS: Final = 3_000_000_000
"""Whoever looks does so once a second and oftener: so long without a look, this process was stopped
(Ctrl-Z, a machine that slept)."""


class LivePicture:
    """A session and the collector that fills it (`tui.picture.Picture`)."""

    def __init__(self, session: Session, collector: Collector, clock: Clock = real_clock) -> None:
        self._session = session
        self._collector = collector
        self._clock = clock
        self._pictured_ns: int | None = None

    def start(self) -> None:
        """Open the sources, on the collector's thread."""
        self._collector.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment. What was not heard while this process was stopped is no
        silence of the run's, so then it is listened for first."""
        before_ns, self._pictured_ns = self._pictured_ns, self._clock.now_ns()
        if before_ns is not None and self._pictured_ns - before_ns > STOPPED_NS:
            self._collector.listen()
            self._pictured_ns = self._clock.now_ns()
        return self._session.snapshot(self._clock.now_ns(), self._clock.now_unix())

    def close(self) -> None:
        """Let go of the target."""
        self._collector.stop()
