"""Asks every source at its own pace, judges once a second, and publishes snapshots."""

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from .. import clock as real_clock
from ..model.observations import AnyObservation, Missing
from ..model.snapshot import Snapshot
from ..verdict.findings import Signal

if TYPE_CHECKING:  # the first frame is drawn before the session is loaded
    from .session import Session


class Source(Protocol):
    """One place that observations come from. All calls come from the collector's one thread."""

    @property
    def name(self) -> Signal:
        """What is missing where it fails."""

    @property
    def interval_ns(self) -> int:
        """How often it wants to be polled."""

    def open(self) -> None:
        """Get ready. Expected trouble is not raised here but delivered as `Missing` by `poll`."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """What is new. Never waits for more than a few milliseconds."""

    def close(self) -> None:
        """Let go of everything."""


OWN_CPU_EVERY_NS: Final = 1_000_000_000
LONGEST_SLEEP_S: Final = 0.25
PUBLISH_NS: Final = 250_000_000
"""Between two snapshots while somebody reads them: a screen draws four a second. They come with the
next turn after it, which the sources have every 100 ms: nothing wakes the thread for them alone."""
STOPPED_NS: Final = 3_000_000_000
"""So long without a turn, this process was stopped (Ctrl-Z)."""
AGAIN_NS: Final = 1_000_000_000
LATEST_AGAIN_NS: Final = 60_000_000_000
"""A source that fails is asked again after a second, then after twice as long each time, up to
this: no descriptor was to be had for a moment, a device was being reset."""
CATCH_UP_NS: Final = 600_000_000
"""The probe answers within its turn of 0.25 s, and sources are asked for it every 0.1 s."""


class Clock(Protocol):
    """`tui.clock`, or a held one in a test."""

    def now_ns(self) -> int: ...
    def now_unix(self) -> float: ...
    def own_cpu_ns(self) -> int: ...


class _Failing(NamedTuple):
    """A source that could not be asked."""

    reason: str
    pause_ns: int
    """Until it is asked again."""
    is_open: bool


class Collector:
    """All of it happens on the thread that calls `run`: sockets of ZeroMQ belong to the thread that
    made them, and a session to one thread. A source that fails is named as missing until it is
    there again; the others go on.

    `publish` gets each snapshot; `is_read` says, once, whether the last one was read since. Without
    a reader there is one snapshot for each verdict.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        session: "Session",
        publish: Callable[[Snapshot], None],
        is_read: Callable[[], bool] = lambda: True,
        clock: Clock = real_clock,
    ) -> None:
        self._session = session
        self._publish = publish
        self._is_read = is_read
        self._clock = clock
        self._unopened: list[Source] = list(sources)
        self._due: list[tuple[int, Source]] = []
        """When each open source is next asked."""
        self._failing: dict[Source, _Failing] = {}
        self._cpu: tuple[int, int] | None = None
        """(now_ns, own_cpu_ns) when our own CPU was last read."""
        self._awake_ns: int | None = None
        """When this thread was last seen running."""
        self._judges_from_ns = 0
        """Before this only the sources are asked: they catch up after a stop."""
        self._publish_ns = 0
        """When the next snapshot is due, in step with the sources."""
        self._stop = Event()

    def run(self, stop: Event, until: Callable[[], bool] = lambda: False) -> None:
        """Turn until `stop` is set or `until` says so, then close the sources."""
        self._stop = stop
        try:
            while not (stop.is_set() or until()):
                next_ns = self.turn()
                wait_s = (next_ns - self._clock.now_ns()) / 1e9
                stop.wait(min(max(wait_s, 0.0), LONGEST_SLEEP_S))
        finally:
            self.close()

    def turn(self) -> int:
        """Ask every source that is due, then judge and publish if that is; returns when the next
        source is due, ns."""
        now_ns = self._awake()
        if self._unopened:
            self._publish_ns = now_ns
        while self._unopened:
            source = self._unopened.pop(0)
            self._due.append((self._open(source, now_ns), source))
        self._due = [self._ask(*entry) for entry in self._due]
        self._measure_own_cpu(now_ns)
        self._judge_and_publish(self._awake())
        return min((due_ns for due_ns, _ in self._due), default=now_ns + PUBLISH_NS)

    def close(self) -> None:
        """Close every source that holds something: an unopened one may hold a page."""
        for _, source in self._due:
            failing = self._failing.get(source)
            if failing is None or failing.is_open:
                let_go(source)
        for source in self._unopened:
            let_go(source)
        self._due, self._unopened = [], []

    def _awake(self) -> int:
        """The time. After this process was stopped, what it did not receive meanwhile is no silence
        of the run: nothing is judged until the sources have caught up."""
        now_ns = self._clock.now_ns()
        if self._awake_ns is not None and now_ns - self._awake_ns > STOPPED_NS:
            self._judges_from_ns = now_ns + CATCH_UP_NS
        self._awake_ns = now_ns
        return now_ns

    def _judge_and_publish(self, now_ns: int) -> None:
        if now_ns < self._judges_from_ns:
            return
        judged = self._session.judge_if_due(now_ns)
        if not judged and (now_ns < self._publish_ns or not self._is_read()):
            return
        if now_ns >= self._publish_ns:
            self._publish_ns = _next_after(self._publish_ns, PUBLISH_NS, now_ns)
        self._publish(self._session.snapshot(now_ns, self._clock.now_unix()))

    def _open(self, source: Source, now_ns: int) -> int:
        """When it is to be asked, ns."""
        try:
            source.open()
        except Exception as error:  # whatever it is, the other sources go on
            let_go(source)
            return self._failed(source, error, is_open=False)
        return now_ns

    def _ask(self, due_ns: int, source: Source) -> tuple[int, Source]:
        now_ns = self._clock.now_ns()
        if now_ns < due_ns or self._stop.is_set():
            return due_ns, source
        failing = self._failing.get(source)
        if failing is not None and not failing.is_open:
            due_ns = self._open(source, now_ns)
            if due_ns > now_ns:
                return due_ns, source
        try:
            observations: list[AnyObservation] = source.poll(now_ns)
        except Exception as error:  # as above
            return self._failed(source, error, is_open=True), source
        if self._failing.pop(source, None) is not None:
            self._session.ingest(Missing(t_ns=now_ns, source=source.name, reason=""))
        for observation in observations:
            self._session.ingest(observation)
        # After a stall one poll and no burst.
        return _next_after(due_ns, source.interval_ns, self._clock.now_ns()), source

    def _failed(self, source: Source, error: Exception, is_open: bool) -> int:
        """Name it as missing; when to try again, ns."""
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        now_ns = self._clock.now_ns()
        before = self._failing.get(source)
        pause_ns = AGAIN_NS if before is None else min(2 * before.pause_ns, LATEST_AGAIN_NS)
        if before is None or before.reason != reason:
            self._session.ingest(Missing(t_ns=now_ns, source=source.name, reason=reason))
        self._failing[source] = _Failing(reason, pause_ns, is_open)
        return now_ns + pause_ns

    def _measure_own_cpu(self, now_ns: int) -> None:
        if self._cpu is not None and now_ns - self._cpu[0] < OWN_CPU_EVERY_NS:
            return
        cpu_ns = self._clock.own_cpu_ns()
        if self._cpu is not None:
            before_ns, before_cpu_ns = self._cpu
            self._session.monitor_used(100.0 * (cpu_ns - before_cpu_ns) / (now_ns - before_ns))
        self._cpu = (now_ns, cpu_ns)


def _next_after(due_ns: int, interval_ns: int, now_ns: int) -> int:
    """The first of the due times that is later than now: what is due alone wakes the thread for
    itself, so all of them stay in step."""
    passed = max(0, now_ns - due_ns) // interval_ns
    return due_ns + (passed + 1) * interval_ns


def let_go(source: Source) -> None:
    """Close it, whatever its state."""
    try:
        source.close()
    except Exception:  # it is being let go of; there is nobody left to report to
        pass
