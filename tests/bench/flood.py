"""A probe's end of the wire that never rests: `python -m tests.bench.flood [MESSAGES_A_SECOND]`.

A process that is found as a training one (it has a state page and a socket) and sends that many
batches a second, each of one step of 10 ms, until it is killed. It says "ready" when it can be
attached to. Nothing trains: this is about what the monitor does with what comes.
"""

import sys
from time import perf_counter_ns, sleep

import zmq

from gpuwatch.probe.identity import identify
from gpuwatch.probe.socket_directory import socket_path
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire.messages import (
    Batch,
    Greeting,
    Hello,
    Open,
    Step,
    Subscribe,
    decode_request,
    encode_message,
)

MESSAGES_S = 5_000
STEP_NS = 10_000_000
TURN_S = 0.01


def step_at(number: int) -> Step:
    """A step that ended just now, most of it waiting."""
    end_ns = perf_counter_ns()
    return Step(
        number=number,
        count=1,
        start_ns=end_ns - STEP_NS,
        end_ns=end_ns,
        data_ns=STEP_NS * 6 // 10,
        startup_ns=0,
        forward_ns=STEP_NS // 10,
        backward_ns=STEP_NS * 2 // 10,
        optimizer_ns=STEP_NS // 10,
        other_ns=0,
        evaluation_ns=0,
        checkpoint_ns=0,
        compile_ns=0,
        phases={},
        fetches=1,
        backwards=1,
        optimizer_steps=1,
        samples=32,
        ready=0,
        data_max_ns=STEP_NS * 6 // 10,
        inference=False,
    )


def frame(sequence: int, steps: list[Step]) -> bytes:
    """One message."""
    now_ns = perf_counter_ns()
    is_open = Open(1, now_ns, now_ns, 0, 0, 0, 0, 0, 0, 0, 0, None, False)
    batch = Batch(sequence, now_ns, steps, is_open, [], 0, None, 300, 4 * sequence, None)
    return encode_message(batch)


def main() -> None:
    """Serve whoever asks, at the pace that was asked for."""
    messages_s = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES_S
    identity = identify(None, None)
    path = socket_path(identity.pid, identity.start_ticks)
    identity = identity.but(f"ipc://{path}", None)
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.linger = 0
    socket.sndhwm = 100_000
    socket.bind(f"ipc://{path}")
    fields = {name: getattr(identity, name) for name in Hello.__struct_fields__}
    state_page = StatePage(identity.as_json(3_000))
    print("ready", flush=True)
    peers: dict[bytes, int] = {}
    number, began_ns, sent = 0, perf_counter_ns(), 0
    while True:
        while socket.poll(0):
            peer, request = socket.recv_multipart()
            if isinstance(decode_request(request), Subscribe) and peer not in peers:
                peers[peer] = 0
                hello = Greeting(Hello(**fields), perf_counter_ns())
                socket.send_multipart([peer, encode_message(hello)])
        due = (perf_counter_ns() - began_ns) * messages_s // 10**9
        ended = perf_counter_ns() // STEP_NS
        for at in range(due - sent):
            # A step every 10 ms; the messages between them bring none.
            steps = [step_at(number := number + 1)] if at == 0 and ended > number else []
            for peer in peers:
                peers[peer] += 1
                socket.send_multipart([peer, frame(peers[peer], steps)])
        if due > sent:
            state_page.add_rows([step_at(number)])  # type: ignore[list-item]
        sent = due
        sleep(TURN_S)


if __name__ == "__main__":
    main()
