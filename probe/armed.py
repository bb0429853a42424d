"""An armed process: its state page and its publisher, from the first mark to the end."""

from .descriptors import check_address_space
from .fuse import Fuse
from .identity import Identity, identify, start_ticks
from .publish import Publisher
from .recorder import Recorder
from .socket_directory import socket_path
from .state_page import StatePage
from .wire import page

LAST_TURN_S = 0.5
"""Longest that leaving may take; a publisher in the middle of a turn needs a hundredth of it."""


class Armed:
    """Raises OSError where no page can be made."""

    def __init__(self, recorder: Recorder, fuse: Fuse) -> None:
        check_address_space()
        self._fuse = fuse
        self._identity = _identity(start_ticks())
        self._page = StatePage(self._identity.as_json(page.HELLO_BYTES))
        self._publisher = Publisher(recorder, self._page, fuse, self._identity)

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
        """The fuse has blown: write so on the page, which needs nobody's help."""
        self._page.words[page.WORD_STATE] = page.STATE_DISARMED
        identity = self._identity.but(self._identity.endpoint, self._fuse.fault)
        self._page.write_hello(identity.as_json(page.HELLO_BYTES))

    def end(self, reason: str, state: int) -> None:
        """Say good-bye, take the socket and the page away."""
        ended = self._publisher.stop(reason, LAST_TURN_S)
        if ended:
            self._page.close(state)


def _identity(ticks: int) -> Identity:
    """This process; without a socket, and saying why, where no safe place for one is found."""
    endpoint, fault = None, None
    try:
        identity = identify(endpoint, fault)
        endpoint = f"ipc://{socket_path(identity.pid, ticks)}"
    except OSError as error:
        fault = f"no socket: {error}"
    return identify(endpoint, fault)
