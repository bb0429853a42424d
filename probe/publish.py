"""The one slow thread: it owns the socket and turns marks into steps, four times a second."""

import threading

from .fuse import Fuse
from .identity import Identity
from .recorder import Recorder
from .state_page import StatePage


class Publisher:
    """A daemon thread around `probe.serve`, whose imports (codec, pyzmq) it does itself."""

    def __init__(
        self, recorder: Recorder, state_page: StatePage, fuse: Fuse, identity: Identity
    ) -> None:
        self._parts = (recorder, state_page, fuse, identity)
        self._fuse = fuse
        self._stop = threading.Event()
        self._reason = "exiting"
        self._thread = threading.Thread(target=self._run, name="gpuwatch", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self, reason: str, wait_s: float) -> bool:
        """Say good-bye and end; waits at most `wait_s`. Whether the thread has ended by then."""
        self._reason = reason
        self._stop.set()
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with self._fuse:
            from .serve import Server, serve

            server = Server(*self._parts)
            serve(server, self._stop, lambda: self._reason)
