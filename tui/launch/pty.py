"""A program on a terminal of its own that looks like ours, so that ours is free for the screen."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from .command import Command

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


# What a program writes, to the terminal, or kept while a screen has it.

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of the newest: some 50,000 lines, more than a terminal scrolls back."""


class HeldOutput:
    """Writes to the terminal `fd`. `hold`, `release` and `write` may come from different threads.

    A terminal that takes nothing holds the program up, as it would without us.
    """

    def __init__(self, fd: int, kept_bytes: int = KEPT_BYTES) -> None:
        self._fd = fd
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._held = False
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0

    def write(self, part: bytes) -> None:
        """Show it, or keep it."""
        with self._lock:
            if not self._held:
                _write_all(self._fd, part)
                return
            self._parts.append(part)
            self._size += len(part)
            while self._size > self._kept_bytes:
                oldest = len(self._parts.popleft())
                self._size -= oldest
                self._dropped += oldest

    def hold(self) -> None:
        """Keep what comes from now on."""
        with self._lock:
            self._held = True

    def release(self) -> None:
        """Show what was kept, and everything from now on."""
        with self._lock:
            self._held = False
            if self._dropped:
                dropped = f"the oldest {self._dropped / 1e3:,.0f} KB of its output were not kept"
                _write_all(self._fd, f"gpuwatch: {dropped}\r\n".encode())
            for part in self._parts:
                _write_all(self._fd, part)
            self._parts.clear()
            self._size = self._dropped = 0


def _write_all(fd: int, part: bytes) -> None:
    """Dropped without an error where the terminal is closed."""
    try:
        while part:
            part = part[os.write(fd, part) :]
    except OSError:
        return


# Our terminal while the program has it: keys go to the program, and so do signals.

POLL_S: Final = 0.1
KEYS_BYTES: Final = 4096
PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@contextmanager
def signals_passed_on(program: OwnTerminal) -> Iterator[None]:
    """Signals for us reach the program; those that we were started to ignore stay ignored."""

    def pass_on(number: int, _: FrameType | None) -> None:
        if program.exit_status is None:
            program.signal(number)

    former = {}
    for name in PASSED_ON:
        number = getattr(signal, name)
        if signal.getsignal(number) != signal.SIG_IGN:
            former[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def relay(program: OwnTerminal, over: Callable[[], bool]) -> None:
    """Give the program our terminal until it has ended, or `over` says so."""
    program.match_size()
    former = signal.signal(signal.SIGWINCH, lambda *_: program.match_size())
    modes = termios.tcgetattr(0)
    _take_keys()
    try:
        while program.exit_status is None and not over():
            ready, _, _ = select.select([0], [], [], POLL_S)
            if ready and not _pass_keys(program, modes):
                break
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
        signal.signal(signal.SIGWINCH, former)


def _pass_keys(program: OwnTerminal, modes: "list[int | list[bytes | int]]") -> bool:
    """What was typed goes to the program; False when there is nobody who could type any more."""
    try:
        keys = os.read(0, KEYS_BYTES)
    except OSError:
        return False
    if not keys:
        return False
    if program.suspends_at(keys):
        _suspend(program, modes)
    else:
        program.type(keys)
    return True


def _suspend(program: OwnTerminal, modes: "list[int | list[bytes | int]]") -> None:
    """Stop the program and then ourselves, for the shell to see; both go on together.

    The program's own terminal cannot do it: no shell is there to wake it up again.
    """
    program.signal_group(signal.SIGSTOP)
    try:
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
        os.killpg(0, signal.SIGTSTP)
        _take_keys()
    finally:  # of a terminal that was closed meanwhile too
        program.signal_group(signal.SIGCONT)


def _take_keys() -> None:
    """Every key as it is; what was typed ahead is not lost."""
    tty.setraw(0, termios.TCSADRAIN)
