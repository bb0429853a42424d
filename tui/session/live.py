"""The picture of a process that runs now: what the screen and the other faces look at."""

from tui import clock as real_clock
from tui.collect import Clock, Collector
from tui.session.store import Session
from tui.snapshot import Snapshot


class LivePicture:
    """A session and the collector that fills it (`tui.picture.Picture`)."""

    def __init__(self, session: Session, collector: Collector, clock: Clock = real_clock) -> None:
        self._session = session
        self._collector = collector
        self._clock = clock

    def start(self) -> None:
        """Open the sources, on the collector's thread."""
        self._collector.start()

    def snapshot(self) -> Snapshot:
        """The picture at this moment."""
        return self._session.snapshot(self._clock.now_ns(), self._clock.now_unix())

    def close(self) -> None:
        """Let go of the target."""
        self._collector.stop()
