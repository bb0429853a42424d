"""An armed process: its state page and its publisher, from the first mark to the end.

The publisher is the one slow thread: it owns the socket and sends the marks on as bytes, four times
a second.
"""

import _thread
import threading
from typing import Final

from .circuit_breaker import CircuitBreaker
from .identity import Identity
from .own_thread import start_thread
from .recorder import Recorder
from .serve import Server, serve
from .socket_place import socket_path
from .state_page import StatePage, check_address_space
from .wire import page

LAST_TURN_S: Final = 0.5
"""Longest that leaving may take; a publisher in the middle of a turn needs a hundredth of it."""


class Armed:
    """Raises OSError where no page can be made."""

    def __init__(self, recorder: Recorder, breaker: CircuitBreaker) -> None:
        check_address_space()
        self._breaker = breaker
        self._identity = _identity()
        self._page = StatePage(self._identity.as_json(page.HELLO_BYTES))
        self._publisher = Publisher(recorder, self._page, breaker, self._identity)

    @property
    def pid(self) -> int:
        """The process that was armed: a fork inherits this object, but not what it stands for."""
        return self._identity.pid

    def start(self) -> None:
        """Begin to publish."""
        self._publisher.start()

    def abandon(self) -> None:
        """In a forked child: what this stands for is the parent's."""
        self._publisher.abandon()

    def report_fault(self) -> None:
        """The breaker has tripped: write so on the page, which needs nobody's help."""
        self._page.words[page.WORD_STATE] = page.STATE_DISARMED
        identity = self._identity.but(self._identity.endpoint, self._breaker.fault)
        self._page.write_hello(identity.as_json(page.HELLO_BYTES))

    def end(self, reason: str, state: int) -> None:
        """Say good-bye, take the socket and the page away."""
        ended = self._publisher.stop(reason, LAST_TURN_S)
        if ended:
            self._page.close(state)


def _identity() -> Identity:
    """This process; without a socket, and saying why, where no safe place for one is found."""
    found = Identity(None, None)
    try:
        found.endpoint = f"ipc://{socket_path(found.pid, found.start_ticks)}"
    except OSError as error:
        found.fault = f"no socket: {error}"
    return found


class Publisher:
    """A daemon thread around `probe.serve`, which takes no signal: those are the run's.

    Not one of `threading`: that counts and lists it, and has it traced where the program has its
    own threads traced (`threading.settrace`).
    """

    def __init__(
        self, recorder: Recorder, state_page: StatePage, breaker: CircuitBreaker, identity: Identity
    ) -> None:
        self._breaker = breaker
        self._server = Server(recorder, state_page, breaker, identity)
        self._stop = threading.Event()
        self._reason = "exiting"
        self._ended = threading.Event()
        self.ident = 0
        """Of the thread, once it was started."""

    def start(self) -> None:
        """Begin to publish. Raises RuntimeError where no thread can be had."""
        self.ident = start_thread(self._run)

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
            with self._breaker:
                _name_thread()
                serve(self._server, self._stop, lambda: self._reason)
                return
            with self._breaker:  # it failed: nobody would answer at its socket
                self._server.close("disarmed")
        finally:
            self._ended.set()


def _name_thread() -> None:
    """For `top` and the like, which show the kernel's name of a thread."""
    try:
        with open(f"/proc/self/task/{_thread.get_native_id()}/comm", "w") as comm:
            comm.write("gpuwatch")
    except OSError:
        pass  # there is no /proc
