"""A program on a terminal of its own that looks like ours, so that ours is free for the screen."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping
from typing import Final

from tui.launching.command import Command

CHUNK_BYTES: Final = 65_536
LAST_WORDS_S: Final = 0.2
"""After the end of a program, what it wrote last is still on its way."""


class OwnTerminal:
    """Starts the program. Where a standard stream of ours is no terminal, the program has it."""

    def __init__(
        self, command: Command, environ: Mapping[str, str], write: Callable[[bytes], None]
    ) -> None:
        self._write = write
        self._master, slave = pty.openpty()
        termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(0))
        self.match_size()
        streams = [slave if os.isatty(fd) else fd for fd in (0, 1, 2)]
        self._process = subprocess.Popen(
            command.words,
            executable=command.path,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env=dict(environ),
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self.pid = self._process.pid
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, name="output", daemon=True)
        self._reader.start()

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.poll()

    def type(self, keys: bytes) -> None:
        """What a person types, ctrl-c included: the terminal makes a signal of it."""
        os.write(self._master, keys)

    def suspends_at(self, keys: bytes) -> bool:
        """Whether these keys are to suspend the job, as the terminal is set now."""
        modes = termios.tcgetattr(self._master)
        key: bytes = modes[6][termios.VSUSP]
        return bool(modes[3] & termios.ISIG) and key in keys

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        self._process.send_signal(number)

    def signal_group(self, number: int) -> None:
        """To the program and whatever it has started in its own group."""
        os.killpg(self.pid, number)

    def match_size(self) -> None:
        """Make it as large as ours."""
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def close(self) -> int:
        """Wait for its end, show its last words; the exit code as a shell would give it."""
        status = self._process.wait()
        self._over.set()
        self._reader.join()
        os.close(self._master)
        return status if status >= 0 else 128 - status

    def _read(self) -> None:
        """A child that outlives the program may hold its terminal open: it is not waited for."""
        while True:
            ready, _, _ = select.select([self._master], [], [], LAST_WORDS_S)
            if not ready:
                if self._over.is_set():
                    return
                continue
            try:
                part = os.read(self._master, CHUNK_BYTES)
            except OSError:
                return  # nobody holds the other end any more
            self._write(part)


def _take_terminal() -> None:
    """In the child, whose session is new: ctrl-c on this terminal is for it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
