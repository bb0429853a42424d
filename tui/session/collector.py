"""One thread that asks every source at its own pace and hands what it saw to the session."""

import threading
from collections.abc import Sequence
from typing import Final, Protocol

from .. import clock as real_clock
from ..model.observations import AnyObservation, Missing
from ..verdict.findings import Signal
from .session import Session

# What a source is: it opens, is polled at its own pace, and closes.


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
STOPPED_NS: Final = 3_000_000_000
"""So long without a turn, this process was stopped (Ctrl-Z)."""
LISTEN_S: Final = 0.6
"""The probe answers within its turn of 0.25 s, and sources are asked for it every 0.1 s."""
LAST_TURN_S: Final = 2.0
"""Longest that `stop` waits for a source in the middle of a poll."""


class Clock(Protocol):
    """`tui.clock`, or a held one in a test."""

    def now_ns(self) -> int: ...
    def now_unix(self) -> float: ...
    def own_cpu_ns(self) -> int: ...


class Collector:
    """Sources are opened, polled and closed on the collector's thread only: sockets of ZeroMQ
    belong to the thread that made them. A source that fails is named as missing; the others go on.
    """

    def __init__(
        self, sources: Sequence[Source], session: Session, clock: Clock = real_clock
    ) -> None:
        self._session = session
        self._clock = clock
        self._waiting: list[Source] = list(sources)
        """Not opened yet."""
        self._due: list[tuple[int, Source]] = []
        """When each open source is next asked."""
        self._cpu: tuple[int, int] | None = None
        """(now_ns, own_cpu_ns) of the last look at ourselves."""
        self._turned_ns: int | None = None
        self._was_stopped = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End and close the sources. May be called twice, and without a start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(LAST_TURN_S)

    def was_stopped(self, now_ns: int) -> bool:
        """Whether there was no turn for long, since this was asked last."""
        stopped = self._was_stopped or _is_long(self._turned_ns, now_ns)
        self._was_stopped = False
        return stopped

    def listen(self) -> None:
        """Wait while what has come in the meantime is taken in."""
        self._stop.wait(LISTEN_S)

    def turn(self) -> int:
        """Ask every source that is due; returns when the next one is, ns."""
        now_ns = self._clock.now_ns()
        self._was_stopped |= _is_long(self._turned_ns, now_ns)
        while self._waiting:
            self._open(self._waiting.pop(0), now_ns)
        self._due = [entry for entry in map(self._ask, self._due) if entry is not None]
        self._look_at_ourselves(now_ns)
        self._turned_ns = self._clock.now_ns()
        later = [due_ns for due_ns, _ in self._due]
        return min(later, default=now_ns + OWN_CPU_EVERY_NS)

    def close(self) -> None:
        """Close every open source."""
        for _, source in self._due:
            _close(source)
        self._due = []

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                next_ns = self.turn()
                wait_s = (next_ns - self._clock.now_ns()) / 1e9
                self._stop.wait(min(max(wait_s, 0.0), LONGEST_SLEEP_S))
        finally:
            self.close()

    def _open(self, source: Source, now_ns: int) -> None:
        try:
            source.open()
        except Exception as error:  # whatever it is, the other sources go on
            self._give_up(source, error)
        else:
            self._due.append((now_ns, source))

    def _ask(self, entry: tuple[int, Source]) -> tuple[int, Source] | None:
        due_ns, source = entry
        now_ns = self._clock.now_ns()
        if now_ns < due_ns or self._stop.is_set():
            return entry
        try:
            seen: list[AnyObservation] = source.poll(now_ns)
        except Exception as error:  # as above
            self._give_up(source, error)
            return None
        for observation in seen:
            self._session.ingest(observation)
        next_ns = due_ns + source.interval_ns
        late_ns = self._clock.now_ns() - next_ns
        if late_ns >= 0:
            # After a stall one poll and no burst, and still in step with the other sources: each
            # that is due alone wakes this thread for itself.
            next_ns += (late_ns // source.interval_ns + 1) * source.interval_ns
        return next_ns, source

    def _give_up(self, source: Source, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        now_ns = self._clock.now_ns()
        self._session.ingest(Missing(t_ns=now_ns, source=source.name, reason=reason))
        _close(source)

    def _look_at_ourselves(self, now_ns: int) -> None:
        if self._cpu is not None and now_ns - self._cpu[0] < OWN_CPU_EVERY_NS:
            return
        cpu_ns = self._clock.own_cpu_ns()
        if self._cpu is not None:
            before_ns, before_cpu_ns = self._cpu
            self._session.monitor_used(100.0 * (cpu_ns - before_cpu_ns) / (now_ns - before_ns))
        self._cpu = (now_ns, cpu_ns)


def _is_long(since_ns: int | None, now_ns: int) -> bool:
    return since_ns is not None and now_ns - since_ns > STOPPED_NS


def _close(source: Source) -> None:
    try:
        source.close()
    except Exception:  # it is being let go of; there is nobody left to tell
        pass
