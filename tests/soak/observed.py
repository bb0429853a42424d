"""The processes of a soak as they are seen from outside, sample after sample."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from gpuwatch.probe.wire import page
from tests.measuring.uses import thread_cpu_s, use_below, use_of
from tests.processes.monitored import hello_of, pages_of
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.soak.files import Files, add, rows

SAMPLE_S: Final = 10.0
FEWEST_SAMPLES: Final = 30
"""Of a short run."""
KEY_SAMPLES: Final = 6
"""The screen is asked for its next view every so many samples: a minute."""
VIEWS: Final = b"123456"
NONE_LOST, SOME_LOST = "none was lost", "messages were lost"
"""What the screen's doctor says of messages."""
ANSWER_S: Final = 10.0


class Observed:
    """Two runs, two monitors."""

    def __init__(
        self,
        files: Files,
        run: "subprocess.Popen[str]",
        twin: "subprocess.Popen[str]",
        lines: "subprocess.Popen[bytes]",
        screen: PseudoTerminal,
        until_s: float,
    ) -> None:
        """All have to have left by `until_s` of the monotonic clock."""
        self._files = files
        self._run, self._twin, self._lines, self._screen = run, twin, lines, screen
        self._until_s = until_s
        self._screen_bytes = 0
        self._publisher: int = rows(files.training("watched"))[0]["publisher"]
        endpoint = hello_of(run.pid).endpoint
        assert endpoint is not None
        self._socket = Path(endpoint.removeprefix("ipc://"))

    def follow(self, seconds: float) -> None:
        """So long, or until the file that ends it is there.

        Raises OSError where one of them dies.
        """
        every_s = min(SAMPLE_S, seconds / FEWEST_SAMPLES)
        began, views, taken = time.monotonic(), cycle(VIEWS), 0
        while (passed := time.monotonic() - began) < seconds and not self._files.stop.exists():
            add(self._files.samples, {"s": round(passed, 3), "t": time.time(), **self._uses()})
            taken += 1
            if taken % KEY_SAMPLES == 0:
                self._press(bytes([next(views)]))
            self._read_screen(lambda: False, began + taken * every_s)

    def close(self) -> dict[str, Any]:
        """The screen's own word on what it lost, None where it has none; then the runs end and
        everybody leaves. Raises where somebody does not."""
        self._press(b"d")
        answers = (NONE_LOST, SOME_LOST)
        answer_s = min(time.monotonic() + ANSWER_S, self._until_s)
        answered = self._read_screen(lambda: any(map(self._screen.shows, answers)), answer_s)
        none_lost = self._screen.shows(NONE_LOST) if answered else None
        self._press(b"\x1b")
        self._files.stop.touch()
        self._read_screen(lambda: self._run.poll() is not None, self._until_s)
        self._press(b"q")
        return {
            "watched_status": self._run.wait(self._left_s()),
            "bare_status": self._twin.wait(self._left_s()),
            "screen_status": self._screen.wait(self._left_s()),
            "json_status": self._lines.wait(self._left_s()),
            "screen_says_none_lost": none_lost,
            "sockets": self._sockets(),
        }

    def _left_s(self) -> float:
        return self._until_s - time.monotonic()

    def _press(self, key: bytes) -> None:
        os.write(self._screen.master, key)

    def _read_screen(self, done: Callable[[], bool], until_s: float) -> bool:
        """All that it writes, until it is done or a moment has come; whether it is done."""
        self._screen.output = b""
        while not done():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            before = len(self._screen.output)
            self._screen.read(min(left_s, 0.5))
            self._screen_bytes += len(self._screen.output) - before
        return True

    def _sockets(self) -> int:
        return len(list(self._socket.parent.glob(f"{self._run.pid}-*")))

    def _uses(self) -> dict[str, Any]:
        pids = {
            "watched": self._run.pid,
            "bare": self._twin.pid,
            "screen": self._screen.process.pid,
            "json": self._lines.pid,
        }
        held = pages_of(self._run.pid)[0]
        lost = held[page.WORD_LOST_MARKS * 8 : page.WORD_LOST_MARKS * 8 + 8]
        return {
            **{name: asdict(use_of(pid)) for name, pid in pids.items()},
            **{f"below_{name}": asdict(use_below(pid)) for name, pid in pids.items()},
            "watched_thread_cpu_s": thread_cpu_s(self._run.pid, self._run.pid),
            "bare_thread_cpu_s": thread_cpu_s(self._twin.pid, self._twin.pid),
            "publisher_cpu_s": thread_cpu_s(self._run.pid, self._publisher),
            "lost_marks": int.from_bytes(lost, "little"),
            "sockets": self._sockets(),
            "screen_bytes": self._screen_bytes,
            "load": os.getloadavg()[0],
        }
