"""A program on a pseudo-terminal of its own: what it writes, what it leaves behind."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.processes.monitored import LIMIT_S

ROOT = Path(__file__).parents[2]
OTHER_SCREEN = b"\x1b[?1049h"
MAIN_SCREEN = b"\x1b[?1049l"
OTHERS = ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES")
"""What the terminal of the tests says of itself; where they run side by side, it is set."""
CURSOR_ON = b"\x1b[?25h"
COLOURS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
"""And moves of the cursor."""


class PseudoTerminal:
    """Starts `python -m module args` on a new terminal.

    `controlling` makes Ctrl-C and the hangup real: the kernel sends the signals.
    """

    def __init__(
        self,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        controlling: bool = True,
        environ: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.master, self._slave = pty.openpty()
        columns, rows = size
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(self._slave)
        self.output = b""
        plain = {k: v for k, v in os.environ.items() if k not in OTHERS}
        path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        env = {**plain, **path, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environ or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=cwd,
            env=env,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=self._take_terminal if controlling else None,
        )

    @staticmethod
    def _take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __enter__(self) -> "PseudoTerminal":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self.master, self._slave):
            if fd >= 0:
                os.close(fd)

    def read(self, seconds: float = 0.05) -> None:
        """Take what there is to take."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            try:
                self.output += os.read(self.master, 1 << 20)
            except OSError:
                pass

    def read_until(self, done: Callable[[], bool], seconds: float = LIMIT_S) -> None:
        """Read until something is true; fails if it does not become so."""
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, self.output[-2_000:]
            self.read()

    def shows(self, text: str) -> bool:
        """The text was written at some time."""
        return text.encode() in self.output

    def matches(self, pattern: str) -> bool:
        """The same of a pattern over lines, whatever the colours."""
        text = COLOURS.sub(b"", self.output).decode(errors="replace")
        return re.search(pattern, text, re.DOTALL) is not None

    def wait(self, seconds: float = LIMIT_S) -> int:
        """The exit status; the output goes on being read."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it did not end"
            self.read()
        have = -1
        while have < len(self.output):  # it comes in pieces of 4 KiB
            have = len(self.output)
            self.read(0.05)
        return self.process.returncode

    def hang_up(self) -> None:
        """The window is closed, the connection lost."""
        for fd in (self._slave, self.master):
            os.close(fd)
        self.master = self._slave = -1

    def is_restored(self) -> bool:
        """Main screen, visible cursor, and the line discipline as it was."""
        tail = self.output[self.output.rfind(OTHER_SCREEN) :]
        modes = termios.tcgetattr(self._slave)
        return MAIN_SCREEN in tail and CURSOR_ON in tail and modes == self.modes_before
