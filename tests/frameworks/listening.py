"""A bare monitor at one process, from its first step to its good-bye."""

import time
from functools import partial
from threading import Event, Thread

import zmq

from gpuwatch.tui.cli.target import has_probe
from gpuwatch.tui.messages import Bye
from gpuwatch.tui.sources.marks.reader import ReplyReader
from gpuwatch.tui.steps import Batch, Step
from tests.processes.monitored import hello_of, subscription, until

AGAIN_S = 1.0
"""Whoever watches says so every second."""


class Listener(Thread):
    """Subscribes to a process and keeps the steps that it reports."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.steps: list[Step] = []
        self.fault: str | None = None
        self.lost_marks = 0
        self.quiet = Event()
        """A batch without a step has come: all that the process has done is here."""
        self._pid = pid
        self._replies = ReplyReader()
        self._left = Event()

    def leave(self) -> None:
        """Stop listening to a process that says no good-bye."""
        self._left.set()

    def run(self) -> None:
        """Until the process says good-bye."""
        until(partial(has_probe, self._pid))
        hello = hello_of(self._pid)
        assert hello.endpoint is not None
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.connect(hello.endpoint)
        try:
            due_s, history = 0.0, True
            while not self._left.is_set():
                if (now_s := time.monotonic()) >= due_s:
                    socket.send(subscription(hello.endpoint, history))
                    due_s, history = now_s + AGAIN_S, False
                if socket.poll(100) and self._take(socket.recv()):
                    return
        finally:
            context.destroy(linger=0)

    def _take(self, frame: bytes) -> bool:
        """Whether that was the good-bye."""
        reply = self._replies.read(frame)
        if isinstance(reply, Batch):
            self.steps += reply.steps
            self.fault = reply.fault
            self.lost_marks = reply.lost_marks
            if not reply.steps:
                self.quiet.set()
            else:
                self.quiet.clear()
        return isinstance(reply, Bye)
