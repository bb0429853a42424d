"""Watching without a screen: the plain stream, one report, or JSON lines."""

import threading
from collections.abc import Callable
from typing import Final, Protocol

from ..model.provider import SnapshotProvider
from ..model.snapshot import Snapshot
from .output import limited, width, write_lines

READ_EVERY_S: Final = 0.1
JSON_EVERY_NS: Final = 600_000_000
"""At least one line a second is promised; there is a snapshot every 250 ms, which may come a turn
of the collector late and be read READ_EVERY_S later."""
ONCE_S: Final = 30.0
"""How long `--once` waits for a verdict."""
RIPE_S: Final = 5.0
"""Steps of before lie ready, so a verdict is there at once; stacks and CPU shares are not."""
LAST_WORDS_NS: Final = 300_000_000
"""After the process has ended: its last messages are still on their way."""

LAST_LINE_S: Final = 1.0
"""After a signal: whoever reads has stalled if it takes no line for so long."""

Until = Callable[[Snapshot], bool]


class Face(Protocol):
    """One way to say what is seen."""

    def show(self, snapshot: Snapshot) -> None:
        """A new snapshot, four times a second."""

    def last(self, snapshot: Snapshot) -> None:
        """The last one."""


class PlainFace:
    """A stream of lines and a report at the end."""

    def __init__(self) -> None:
        from ..formats.plain import PlainView

        self._view = PlainView(width())

    def show(self, snapshot: Snapshot) -> None:
        """Write what is new."""
        write_lines(self._view.lines(snapshot))

    def last(self, snapshot: Snapshot) -> None:
        """The closing report."""
        write_lines(self._view.closing(snapshot))


class OnceFace:
    """Silence, then one report."""

    def show(self, snapshot: Snapshot) -> None:
        """Nothing yet."""

    def last(self, snapshot: Snapshot) -> None:
        """The report."""
        from ..formats.report import report_lines

        write_lines(report_lines(snapshot, width()))


class JsonFace:
    """One object a line."""

    def __init__(self) -> None:
        self._next_ns: int | None = None

    def show(self, snapshot: Snapshot) -> None:
        """A line when one is due."""
        if self._next_ns is None or snapshot.t_ns >= self._next_ns:
            # The promise is kept from line to line: a late one does not delay the others.
            at_ns = snapshot.t_ns if self._next_ns is None else self._next_ns
            self._next_ns = max(at_ns + JSON_EVERY_NS, snapshot.t_ns)
            self._write(snapshot, final=False)

    def last(self, snapshot: Snapshot) -> None:
        """The line with `final`."""
        self._write(snapshot, final=True)

    def _write(self, snapshot: Snapshot, final: bool) -> None:
        from ..formats.jsonlines import line

        write_lines([line(snapshot, final)])


class OnceJsonFace(JsonFace):
    """Silence, then the line with `final`."""

    def show(self, snapshot: Snapshot) -> None:
        """Nothing yet."""


def watch(provider: SnapshotProvider, face: Face, until: Until) -> Snapshot:
    """Show the run until `until` says so or the process ends; returns the last snapshot.

    Interrupted (KeyboardInterrupt), the face has its last word before the exception goes on.
    The provider is closed in every case.
    """
    snapshot = shown = provider.snapshot()
    pause = threading.Event()
    ended_ns: int | None = None
    try:
        provider.start()
        while True:
            try:
                pause.wait(READ_EVERY_S)
                snapshot = provider.snapshot()
                if ended_ns is None and snapshot.status.state == "ended":
                    ended_ns = snapshot.t_ns
                if ended_ns is not None and snapshot.t_ns - ended_ns >= LAST_WORDS_NS:
                    break
                if until(snapshot):
                    break
                if snapshot is not shown:
                    face.show(snapshot)
                shown = snapshot
            except KeyboardInterrupt:
                with limited(LAST_LINE_S):
                    face.last(provider.snapshot())
                raise
        face.last(snapshot)
        return snapshot
    finally:
        provider.close()


def for_duration(duration_s: float | None) -> Until:
    """Until so many seconds after attaching; for ever with None."""
    return lambda snapshot: duration_s is not None and snapshot.attached_s >= duration_s


def until_verdict(duration_s: float | None) -> Until:
    """Until there is a verdict, or the time is over (ONCE_S by default)."""
    limit_s = ONCE_S if duration_s is None else duration_s

    def over(snapshot: Snapshot) -> bool:
        ripe = has_verdict(snapshot) and snapshot.attached_s >= RIPE_S
        return ripe or snapshot.attached_s >= limit_s

    return over


def has_verdict(snapshot: Snapshot) -> bool:
    """Whether the engine has made up its mind: neither warming up nor short of a signal."""
    return snapshot.verdict.finding.kind not in ("warming-up", "incomplete")
