"""The picture of a process that runs now: what the screen and the other faces look at."""

from tui import clock as real_clock
from tui.collect import STOPPED_NS, Clock, Collector
from tui.session.store import Session
from tui.snapshot import Snapshot


class LivePicture:
    """A session and the collector that fills it (`tui.picture.Picture`)."""

    news = ""

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
        now_ns, before_ns = self._clock.now_ns(), self._pictured_ns
        late = before_ns is not None and now_ns - before_ns > STOPPED_NS
        if late and self._collector.was_stopped(now_ns):
            self._collector.listen()
        self._pictured_ns = self._clock.now_ns()
        return self._session.snapshot(self._pictured_ns, self._clock.now_unix())

    def close(self) -> None:
        """Let go of the target."""
        self._collector.stop()
