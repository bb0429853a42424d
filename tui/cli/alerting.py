"""`attach --notify COMMAND`, `--bell`, `--desktop`: notifies a person who looks elsewhere."""

import argparse
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..launch.notice import NoticeCommand, words_of
from ..terminal import BELL, desktop_notice
from .output import write_notes

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from ..session.alerts import Alert
    from ..session.live import LiveProvider

MOST_UNWRITTEN: Final = 8
"""Signs that wait for the screen's next frame."""


def add_alerts(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = command.add_argument_group(
        "when the verdict changes, or the run stalls, ends or will be out of memory"
    )
    group.add_argument(
        "--notify", metavar="COMMAND", help="run it, what happened as its last argument"
    )
    group.add_argument("--bell", action="store_true", help="ring the terminal's bell")
    group.add_argument(
        "--desktop", action="store_true", help="a notice by the terminal (OSC 9 or 777)"
    )


class Alerting:
    """The ways that were asked for. What happened comes on a collector's thread."""

    def __init__(self, words: list[str] | None, bell: bool, desktop: bool) -> None:
        """`words`: a program and its first arguments."""
        self._report: Callable[[str], None] = lambda line: write_notes([f"gpuwatch: {line}"])
        self._command = (
            None if words is None else NoticeCommand(words, lambda line: self._report(line))
        )
        self._bell = bell
        self._desktop = desktop
        self._signs: deque[str] = deque(maxlen=MOST_UNWRITTEN)
        """For the terminal, by a screen."""
        self._screen = False

    def follow(self, provider: "LiveProvider") -> "LiveProvider":
        """Notify of what happens to its run; returns it."""
        from ..session.alerts import Alerts

        alerts = Alerts()

        def seen(snapshot: "Snapshot") -> None:
            for alert in alerts.look(snapshot):
                self._notify(alert)

        provider.on_snapshot = seen
        return provider

    def on_a_screen(self, report: Callable[[str], None]) -> None:
        """A screen writes the signs from now on, with its frames, and `report` shows a line."""
        self._screen = True
        self._report = report

    def signs(self) -> str:
        """What the terminal is to be sent now; "" for nothing."""
        text = ""
        while self._signs:
            text += self._signs.popleft()
        return text

    def close(self) -> None:
        """Let the last notices go out."""
        if self._command is not None:
            self._command.close()

    def _notify(self, alert: "Alert") -> None:
        text = f"gpuwatch: {alert.text}"  # so it begins with no "-": the command takes it for text
        if self._command is not None:
            self._command.send(text, facts_of(alert))
        sign = (BELL if self._bell else "") + (desktop_notice(text) if self._desktop else "")
        if sign and self._screen:
            self._signs.append(sign)
        elif sign:
            _write_sign(sign)


def alerting_of(arguments: argparse.Namespace) -> Alerting | None:
    """As the command line asks; None where it does not. Raises UsageError where the command is
    none."""
    words = words_of(arguments.notify) if arguments.notify is not None else None
    if words is None and not arguments.bell and not arguments.desktop:
        return None
    return Alerting(words, arguments.bell, arguments.desktop)


def facts_of(alert: "Alert") -> dict[str, str]:
    """What the command finds in its environment; "" is not known."""
    return {
        "GPUWATCH_ALERT": alert.kind,
        "GPUWATCH_TEXT": alert.text,
        "GPUWATCH_VERDICT": alert.verdict,
        "GPUWATCH_SHARE": "" if alert.share is None else f"{alert.share:.3f}",
        "GPUWATCH_PID": str(alert.pid),
        "GPUWATCH_SCRIPT": alert.script,
        "GPUWATCH_RANK": "" if alert.rank is None else str(alert.rank),
        "GPUWATCH_HOST": alert.host,
        "GPUWATCH_STEP": "" if alert.step is None else str(alert.step),
    }


def why_no_signs() -> str | None:
    """Why nothing can be sent to a terminal; None where it can. Signs go where notes go."""
    stream = sys.stderr
    return None if stream is not None and stream.isatty() else "standard error is no terminal"


def _write_sign(sign: str) -> None:
    """Without a screen, from the collector's thread; in one call, so that no line is cut."""
    if why_no_signs() is not None:
        return
    try:
        os.write(sys.stderr.fileno(), sign.encode())
    except (OSError, ValueError):
        pass  # the terminal is gone
