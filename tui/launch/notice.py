"""Runs a person's command for each notice: no shell, one at a time, and never for long."""

import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import UsageError

COMMAND_S: Final = 30.0
"""For one notice: a mail or a web request is out by then."""
LAST_S: Final = 5.0
"""What the last notices may take once the monitor ends."""
MOST_WAITING: Final = 8
"""Notices that wait for the one before; the others are dropped, and counted."""

Report = Callable[[str], None]


def words_of(command: str) -> list[str]:
    """The program and its arguments, as a shell would split them; nothing else of a shell is done.
    Raises UsageError where there is no such program."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--notify {command!r} cannot be read", str(error)) from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"--notify: there is no program {words[0] if words else ''!r}",
            "It is run without a shell, with what happened as its last argument.",
            "As --notify notify-send, or --notify ./tell.sh",
        )
    return words


class NoticeCommand:
    """One command, on a thread of its own."""

    def __init__(self, words: list[str], report: Report) -> None:
        """`report` takes a line for a person where a run of it fails."""
        self._words = words
        self._report = report
        self._waiting: queue.Queue[tuple[str, Mapping[str, str]] | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._running: subprocess.Popen[bytes] | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def send(self, text: str, facts: Mapping[str, str]) -> None:
        """Run it soon with `text` as its last argument, and `facts` in its environment."""
        try:
            self._waiting.put_nowait((_printable(text), facts))
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Let the last ones run for `LAST_S`, then end what runs."""
        try:
            self._waiting.put(None, timeout=LAST_S)
        except queue.Full:
            pass
        else:
            self._thread.join(LAST_S)
        self._ends.set()
        if (running := self._running) is not None:
            _kill(running)
        self._thread.join(1.0)

    def _run(self) -> None:
        while (notice := self._waiting.get()) is not None and not self._ends.is_set():
            why = self._once(*notice)
            if self._dropped:
                why += f"{'; ' if why else ''}{self._dropped} notices were dropped meanwhile"
                self._dropped = 0
            if why:
                self._report(f"--notify {self._words[0]}: {why}")

    def _once(self, text: str, facts: Mapping[str, str]) -> str:
        """Why it failed; "" where it did not."""
        known = {name: _printable(value) for name, value in facts.items()}
        try:
            self._running = subprocess.Popen(
                [*self._words, text],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **known},
                start_new_session=True,
            )
            code = self._running.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            _kill(self._running)
            return f"was ended after {COMMAND_S:.0f} s"
        except OSError as error:
            return f"cannot be run: {error.strerror or error}"
        finally:
            self._running = None
        return f"ended with exit code {code}" if code else ""


def _kill(running: "subprocess.Popen[bytes] | None") -> None:
    """It and what it started."""
    if running is None:
        return
    try:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(1.0)
    except (OSError, subprocess.TimeoutExpired):
        pass  # it has ended, or the kernel holds it


def _printable(text: str) -> str:
    """A process names itself and its files: nothing that commands a terminal, or ends a string."""
    return "".join(char if char.isprintable() else "?" for char in text)
