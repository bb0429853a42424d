"""Section `wire`: what a monitor is sent, counted at its end of the socket."""

from collections.abc import Iterator
from time import monotonic
from typing import Final

import zmq

from tests.bench.cost.machine import sides
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.processes.monitored import hello_of, subscription

PACES: Final = (50, 200)
WORKERS: Final = 4
AGAIN_S: Final = 1.0
WARM_S: Final = 2.0
"""Greeting, settings, loaders: reported once."""


def claims(seconds: float) -> Iterator[Claim]:
    """A row a pace, within about so many seconds."""
    side = sides()[-1]
    for pace in PACES:
        words = ["-m", "tests.bench.cost.paced", str(pace), str(WORKERS)]
        with Child(words, side.environment) as child:
            child.ready()
            endpoint = hello_of(child.pid).endpoint
            assert endpoint is not None, "the probe has no socket"
            bytes_s, messages_s = received(endpoint, seconds / len(PACES))
        figures = {"steps_s": pace, "bytes_s": bytes_s, "messages_s": messages_s}
        measured = f"{bytes_s / 1e3:.1f} kB/s in {messages_s:.1f} messages a second"
        yield Claim("on the wire", f"{side.name}, {pace} steps/s", measured, "", None, figures)


def received(endpoint: str, seconds: float) -> tuple[float, float]:
    """(bytes, messages) a second that a watched probe sends."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.connect(endpoint)
    begin_s = monotonic() + WARM_S
    end_s, next_s = begin_s + seconds, 0.0
    length, messages = 0, 0
    while (now_s := monotonic()) < end_s:
        if now_s >= next_s:
            socket.send(subscription(endpoint, history=False))
            next_s = now_s + AGAIN_S
        if socket.poll(50):
            frame = socket.recv()
            if monotonic() >= begin_s:
                length += len(frame)
                messages += 1
    context.destroy(linger=0)
    return length / seconds, messages / seconds
