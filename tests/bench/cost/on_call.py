"""A monitor that watches when it is told to: reads "watch ENDPOINT" and "rest" from stdin.

Says "watching" at the first reply. Like a monitor it asks every second and decodes everything.
"""

import os
import sys
from time import monotonic

import zmq

from gpuwatch.probe.wire.messages import SCHEMA, Leave, Subscribe, decode_reply, encode_message

AGAIN_S = 1.0


def main() -> None:
    """Until stdin ends."""
    context = zmq.Context()
    poller = zmq.Poller()
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    socket: zmq.Socket[bytes] | None = None
    next_s, told = 0.0, False
    while True:
        if socket is not None and monotonic() >= next_s:
            socket.send(encode_message(Subscribe(SCHEMA, os.getpid(), history=not told)))
            next_s = monotonic() + (AGAIN_S if told else 0.1)
        for ready, _ in poller.poll(100):
            if ready is socket:
                decode_reply(socket.recv())
                if not told:
                    print("watching", flush=True)
                    told = True
                continue
            word, _, endpoint = sys.stdin.readline().strip().partition(" ")
            if socket is not None:
                poller.unregister(socket)
                socket.send(encode_message(Leave(os.getpid())))
                socket.close(linger=100)
                socket = None
            if word == "watch":
                socket = context.socket(zmq.DEALER)
                socket.connect(endpoint)
                poller.register(socket, zmq.POLLIN)
                next_s, told = 0.0, False
            elif word != "rest":
                context.destroy(linger=0)
                return


if __name__ == "__main__":
    main()
