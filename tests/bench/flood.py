"""A probe's end of the wire that never rests: `python -m tests.bench.flood [MESSAGES_A_SECOND]`.

A process that is found as a training one (it has a state page and a socket) and sends that many
messages a second until it is killed, with the marks of a step of 10 ms each time that one has
passed. It says "ready" when it can be attached to. Nothing trains: this is about what the monitor
does with what comes.
"""

import sys
from array import array
from time import perf_counter_ns, sleep
from typing import Final

import zmq
from msgspec.structs import astuple

from gpuwatch.probe.encoding import Subscribe, decode_request, encode_greeting, encode_marks
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.socket_place import socket_path
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.messages import Marks

MESSAGES_S: Final = 5_000
STEP_NS: Final = 10_000_000
TURN_S: Final = 0.01
STEP: Final = {
    marks.FETCH_ENTER: 0,
    marks.FETCH_LEAVE: STEP_NS * 6 // 10,
    marks.BACKWARD_ENTER: STEP_NS * 7 // 10,
    marks.BACKWARD_LEAVE: STEP_NS * 9 // 10,
    marks.OPTIMIZER_ENTER: STEP_NS * 9 // 10,
    marks.OPTIMIZER_LEAVE: STEP_NS,
}
"""When its marks come: most of it is waiting."""


def body(start_ns: int) -> bytes:
    """The marks of a step that began then, in columns."""
    times_ns = array("q", [start_ns + at_ns for at_ns in STEP.values()])
    return times_ns.tobytes() + array("q", map(marks.word_of, STEP)).tobytes()


def frame(sequence: int, steps: int, body: bytes) -> bytes:
    """One message."""
    reported = Marks(
        sequence, perf_counter_ns(), len(STEP) * steps, steps, [], [], [], None, None, 300, None,
        None, 0, [], [], [], [], None, 0,
    )  # fmt: skip
    return encode_marks(astuple(reported)[:-1]) + body


def main() -> None:
    """Serve whoever asks, at the pace that was asked for."""
    messages_s = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES_S
    identity = Identity(None, None)
    path = socket_path(identity.pid, identity.start_ticks)
    identity = identity.but(f"ipc://{path}", None)
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.linger = 0
    socket.sndhwm = 100_000
    socket.bind(f"ipc://{path}")
    state_page = StatePage(identity.as_json(page.HELLO_BYTES))
    print("ready", flush=True)
    peers: dict[bytes, int] = {}
    steps, began_ns, sent = 0, perf_counter_ns(), 0
    while True:
        while socket.poll(0):
            peer, request = socket.recv_multipart()
            if isinstance(decode_request(request), Subscribe) and peer not in peers:
                peers[peer] = 0
                socket.send_multipart([peer, encode_greeting(identity, perf_counter_ns())])
        now_ns = perf_counter_ns()
        new = b""
        if (now_ns - began_ns) // STEP_NS > steps:
            new = body(began_ns + steps * STEP_NS)
            state_page.put(len(STEP) * steps, new)
            steps += 1
            state_page.words[page.WORD_STEPS] = steps
            state_page.words[page.WORD_MARKS] = len(STEP) * steps
            state_page.words[page.WORD_HEARTBEAT] = now_ns
            state_page.words[page.WORD_OPEN] = page.pack_open(marks.OPTIMIZER_LEAVE, now_ns)
        due = (now_ns - began_ns) * messages_s // 10**9
        for at in range(due - sent):
            for peer in peers:
                peers[peer] += 1
                message = frame(peers[peer], steps, new if at == 0 else b"")
                socket.send_multipart([peer, message])
        sent = due
        sleep(TURN_S)


if __name__ == "__main__":
    main()
