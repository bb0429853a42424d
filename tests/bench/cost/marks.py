"""Section `marks`: whether marks are lost at 10,000 steps a second, watched.

Every mark that `hook_calls` made has to arrive, or to be reported by the probe as lost.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any, Final

import zmq

from gpuwatch.probe.wire import marks
from gpuwatch.tui.messages import Marks, decode_reply
from gpuwatch.tui.sources.marks.reader import columns_of
from tests.bench.cost.machine import HOST
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.processes.monitored import hello_of, subscription

STEPS_S: Final = 10_000
AGAIN_S: Final = 1.0
LIMIT_S: Final = 30.0
STEP: Final = frozenset(
    {
        marks.FETCH_ENTER,
        marks.FETCH_LEAVE,
        marks.BACKWARD_ENTER,
        marks.BACKWARD_LEAVE,
        marks.OPTIMIZER_ENTER,
        marks.OPTIMIZER_LEAVE,
    }
)
"""The marks of a step of `hook_calls`."""


class Tally:
    """What a monitor has of the marks of steps."""

    def __init__(self) -> None:
        self.messages = 0
        self.received = 0
        self.reported = 0
        """Lost by the probe, which says so: marks whose word is 0."""

    def take(self, facts: Marks) -> None:
        """One message. One that is missed leaves marks that are neither received nor reported."""
        _, words = columns_of(facts.body)
        self.messages += 1
        self.received += sum(marks.kind_and_detail(word)[0] in STEP for word in words)
        self.reported += words.count(0)

    def missing(self, made: int) -> int:
        """Of so many marks."""
        return made - self.received - self.reported


def claims(seconds: float) -> Iterator[Claim]:
    """One row, within about so many seconds."""
    words = ["-m", "tests.bench.cost.hook_calls", str(STEPS_S), str(seconds)]
    with Child(words, HOST.environment) as child, ExitStack() as stack:
        child.ready()
        endpoint = hello_of(child.pid).endpoint
        assert endpoint is not None, "the probe has no socket"
        context = zmq.Context()
        stack.callback(context.destroy, linger=0)
        socket = context.socket(zmq.DEALER)
        socket.connect(endpoint)
        before, tally = Tally(), Tally()
        _follow(socket, endpoint, before, lambda: before.messages > 0, LIMIT_S)
        child.send()
        _follow(socket, endpoint, tally, lambda: False, seconds)
        made = child.answer(LIMIT_S)
        _follow(socket, endpoint, tally, lambda: tally.missing(made["marks"]) <= 0, LIMIT_S)
    yield row(tally, made, seconds)


def _follow(
    socket: "zmq.Socket[bytes]",
    endpoint: str,
    tally: Tally,
    is_over: Callable[[], bool],
    seconds: float,
) -> None:
    """Watch until it is over, at most so long."""
    until_s, next_s = monotonic() + seconds, 0.0
    while not is_over() and (now_s := monotonic()) < until_s:
        if now_s >= next_s:
            socket.send(subscription(endpoint, history=False))
            next_s = now_s + AGAIN_S
        if socket.poll(100):
            reply = decode_reply(socket.recv())
            if isinstance(reply, Marks):
                tally.take(reply)


def row(tally: Tally, made: dict[str, Any], seconds: float) -> Claim:
    """None lost, or as many as the probe says."""
    missing = tally.missing(made["marks"])
    measured = f"{made['marks']:,} made, {tally.reported:,} reported as lost, {missing:,} missing"
    loop = f"hooks alone, {made['steps_s']:,.0f} steps/s for {seconds:.0f} s"
    met = missing == 0 or (missing < 0 < tally.reported)  # others than a step's may be lost too
    figures = {"reported": tally.reported, "missing": missing, **made}
    return Claim("marks lost", loop, measured, "none, or all reported", met, figures)
