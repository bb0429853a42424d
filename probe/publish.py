"""The one slow thread: it owns the socket and turns marks into steps, four times a second."""

import _thread
import signal
import threading
from typing import Final

from .fuse import Fuse
from .identity import Identity
from .recorder import Recorder
from .serve import Server, serve
from .state_page import StatePage

_OF_THE_THREAD: Final = frozenset(
    getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
)
"""Signals of what a thread itself does; blocked, they would end the process without a handler."""


class Publisher:
    """A daemon thread around `probe.serve`, which takes no signal: those are the run's.

    Not one of `threading`: that counts and lists it, and has it traced where the program has its
    own threads traced (`threading.settrace`).
    """

    def __init__(
        self, recorder: Recorder, state_page: StatePage, fuse: Fuse, identity: Identity
    ) -> None:
        self._fuse = fuse
        self._server = Server(recorder, state_page, fuse, identity)
        self._stop = threading.Event()
        self._reason = "exiting"
        self._ended = threading.Event()
        self.ident = 0
        """Of the thread, once it was started."""

    def start(self) -> None:
        """Begin to publish. Raises RuntimeError where no thread can be had."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OF_THE_THREAD)
        try:
            self.ident = _thread.start_new_thread(self._run, ())  # it inherits the mask
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self, reason: str, wait_s: float) -> bool:
        """Say good-bye and end; waits at most `wait_s`. Whether the thread has ended by then."""
        self._reason = reason
        self._stop.set()
        self._server.wake()
        return self._ended.wait(wait_s)

    def abandon(self) -> None:
        """In a forked child, where the thread is not: let go of the parent's sockets."""
        self._server.abandon()

    def _run(self) -> None:
        try:
            with self._fuse:
                _name_thread()
                serve(self._server, self._stop, lambda: self._reason)
        finally:
            self._ended.set()


def _name_thread() -> None:
    """For `top` and the like, which show the kernel's name of a thread."""
    try:
        with open(f"/proc/self/task/{_thread.get_native_id()}/comm", "w") as comm:
            comm.write("gpuwatch")
    except OSError:
        pass  # there is no /proc
