"""A monitor's end of the wire and nothing else: subscribes to ARGV[1] and reads until killed."""

import os
import sys

import zmq

from probe.wire.messages import SCHEMA, Subscribe, decode_reply, encode_message


def main() -> None:
    """Say every second that somebody watches; read and decode everything."""
    socket = zmq.Context().socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(sys.argv[1])
    first = True
    while True:
        socket.send(encode_message(Subscribe(SCHEMA, os.getpid(), history=first)))
        while socket.poll(1000):
            decode_reply(socket.recv())
            if first:
                print("reading", flush=True)
                first = False
                break


if __name__ == "__main__":
    main()
