"""A monitor without a screen: `python -m tests.bench.cost.on_call ENDPOINT`, until stdin ends.

It asks every second, as a monitor does, and makes steps of what comes.
"""

import os
import sys
from time import monotonic
from typing import Final

import zmq

from gpuwatch.tui.messages import encode_message
from gpuwatch.tui.requests import Leave
from gpuwatch.tui.sources.marks.reader import ReplyReader
from tests.processes.monitored import subscription

AGAIN_S: Final = 1.0


def main() -> None:
    """Watch."""
    context = zmq.Context()
    poller = zmq.Poller()
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    socket.connect(sys.argv[1])
    poller.register(socket, zmq.POLLIN)
    replies, next_s = ReplyReader(), 0.0
    while True:
        if monotonic() >= next_s:
            socket.send(subscription(sys.argv[1], history=False))
            next_s = monotonic() + AGAIN_S
        for ready, _ in poller.poll(100):
            if ready is socket:
                replies.read(socket.recv())
            elif not sys.stdin.readline():
                socket.send(encode_message(Leave(os.getpid())))
                socket.close(linger=100)
                context.term()
                return


if __name__ == "__main__":
    main()
