"""The monitor's end of the wire in a thread: subscribes, and keeps what it is sent."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Final

import zmq

from gpuwatch.tui.messages import encode_message
from gpuwatch.tui.requests import Leave
from gpuwatch.tui.sources.marks.reader import ReplyReader
from gpuwatch.tui.steps import Batch, GpuClock, GpuStep, Step
from tests.processes.monitored import hello_of, subscription

AGAIN_S: Final = 1.0
"""As a monitor does: the sign that somebody still watches."""


class Watcher(threading.Thread):
    """What one process reported since it was started."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(daemon=True)
        self.steps: list[Step] = []
        self.gpu_steps: list[GpuStep] = []
        self.clocks: list[GpuClock] = []
        self.faults: set[str] = set()
        self._endpoint = endpoint
        self._replies = ReplyReader()
        self._done = threading.Event()

    def run(self) -> None:
        """Until asked to stop."""
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.linger = 100
        socket.connect(self._endpoint)
        next_s = 0.0
        while not self._done.is_set():
            if monotonic() >= next_s:
                socket.send(subscription(self._endpoint, next_s == 0.0))
                next_s = monotonic() + AGAIN_S
            if socket.poll(50):
                self._take(socket.recv())
        socket.send(encode_message(Leave(os.getpid())))
        socket.close()
        context.term()

    def stop(self) -> None:
        """Say good-bye, and wait for the thread."""
        self._done.set()
        self.join(5)

    def wait_for(self, t_ns: int, limit_s: float = 3.0) -> None:
        """Until a device's step that began at or after `t_ns` was reported, or the time is up."""
        end_s = monotonic() + limit_s
        while monotonic() < end_s:
            if self.gpu_steps and self.gpu_steps[-1].start_ns >= t_ns:
                return
            sleep(0.05)

    def _take(self, frame: bytes) -> None:
        reply = self._replies.read(frame)
        if isinstance(reply, Batch):
            self.steps.extend(reply.steps)
            self.gpu_steps.extend(reply.gpu_steps)
            self.clocks.extend(reply.gpu_clocks)
            if reply.fault:
                self.faults.add(reply.fault)


@contextmanager
def watching(pid: int) -> Iterator[Watcher]:
    """Watch a process that has the probe."""
    endpoint = hello_of(pid).endpoint
    assert endpoint is not None, "the probe has no socket"
    watcher = Watcher(endpoint)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()
