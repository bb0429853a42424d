"""Monitors of a run under test: real processes, as people start, stop and kill them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.processes.command_line import environment

READS = """
import os, sys, zmq
from gpuwatch.tui.messages import Marks, decode_reply
from tests.processes.monitored import subscription
context = zmq.Context()
socket = context.socket(zmq.DEALER)
socket.connect(sys.argv[1])
seen = 0
while True:
    socket.send(subscription(sys.argv[1], not seen))
    while socket.poll(500):
        batch = decode_reply(socket.recv())
        if isinstance(batch, Marks):
            if batch.sequence == 1 and seen:
                print("anew", len(batch.body), flush=True)
            elif batch.sequence != seen + 1:
                print("lost", batch.sequence - seen - 1, flush=True)
            if not seen:
                print("watching", flush=True)
            seen = batch.sequence
            if seen % 5 == 0:
                break
"""
"""Prints what it missed, or that it begins anew after its connection was dropped. Subscribes again
every second or so."""

NEVER_READS = """
import os, sys, time, zmq
from tests.processes.monitored import subscription
context = zmq.Context()
socket = context.socket(zmq.DEALER)
socket.rcvhwm = 1
socket.connect(sys.argv[1])
while True:
    for _ in range(20):
        socket.send(subscription(sys.argv[1]))
    print("asked", flush=True)
    sys.stdin.readline()
"""
"""Asks for the whole history twenty times a line that it is given, and takes nothing."""


@contextmanager
def monitor(program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A monitor's process; killed at the end if it still lives."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()
