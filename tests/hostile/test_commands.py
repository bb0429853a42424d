"""What a monitor can make a training process do is a closed list: watch, leave, ask for stacks, for
the flight recorder, for a window of the profiler or of memory."""

import os
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from gpuwatch.probe import collectives
from gpuwatch.probe.api import LONGEST_NAME
from gpuwatch.probe.circuit_breaker import CircuitBreaker
from gpuwatch.probe.encoding import decode_request
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.peers import MOST_PEERS
from gpuwatch.probe.recorder import MOST_NAMES, MOST_RARE, Recorder
from gpuwatch.probe.serve import REQUESTS_A_TURN, Server
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.probe.wire.marks import BACKWARD_ENTER, LOADER, MARK_BYTES, RING
from gpuwatch.tui import messages as wire
from gpuwatch.tui import requests
from gpuwatch.tui.messages import Dump
from tests.hostile.shapes import anything

COMMANDS = {"subscribe", "leave", "stacks", "collectives", "profile", "memory"}
"""One more is a decision: it comes here with a test that says what it may do."""


KEY = "the key"


class Received:
    """An endpoint that receives what it is made to, and remembers what was answered."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, bytes]] = []
        self.answers: list[tuple[bytes, wire.Reply]] = []
        self.path = "/nowhere/x.sock"
        self.key = KEY

    def pid_of(self, peer: bytes) -> int:
        return 1

    def hold(self) -> None:
        """It is there."""

    def receive(self, most: int) -> list[tuple[bytes, bytes]]:
        received, self.frames = self.frames[:most], self.frames[most:]
        return received

    def send(self, peer: bytes, *frame: bytes) -> None:
        self.answers.append((peer, wire.decode_reply(b"".join(frame))))


def server() -> tuple[Server, Received, CircuitBreaker]:
    breaker = CircuitBreaker(lambda: None)
    recorder = Recorder(lambda _: True, breaker.trip)
    identity = Identity("ipc:///nowhere/x.sock", None)
    state_page = StatePage(identity.as_json(page.HELLO_BYTES))
    made, received = Server(recorder, state_page, breaker, identity), Received()
    made._endpoint = received  # type: ignore[assignment]
    return made, received, breaker


def test_the_list_is_closed() -> None:
    tags = {kind.__struct_config__.tag for kind in known()}
    assert tags == COMMANDS


def known() -> tuple[Any, ...]:
    return tuple(requests.Request.__args__)


def with_key(request: Any) -> bytes:
    """As of who may ask; what has not the key is only counted."""
    if hasattr(request, "key"):
        request = msgspec.structs.replace(request, key=KEY)
    return wire.encode_message(request)


REQUESTS = some.one_of([anything(kind).map(with_key) for kind in known()])


@pytest.mark.parametrize("tag", ["run", "eval", "exec", "taken", "stop", "set", "batch", "dump"])
def test_nothing_else_is_a_request(tag: str) -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        decode_request(msgspec.json.encode([tag, 1, os.getpid(), True]))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(
    some.lists(
        some.tuples(
            some.sampled_from([b"a", b"b", *(b"%d" % n for n in range(40))]),
            some.one_of(some.binary(max_size=60), REQUESTS),
        ),
        max_size=80,
    )
)  # fmt: skip
def test_whatever_is_asked_the_answers_are_few_and_the_probe_stays(
    frames: list[tuple[bytes, bytes]],
) -> None:
    made, received, breaker = server()
    received.frames = list(frames)
    while received.frames:
        asked = received.frames[:REQUESTS_A_TURN]
        received.answers.clear()
        made.turn()
        assert len(received.answers) <= len(asked) + MOST_PEERS
        for peer, answer in received.answers:
            windows = wire.Profiled | wire.MemorySeen
            assert isinstance(
                answer, wire.Greeting | wire.Marks | Dump | wire.Collectives | windows
            )
            assert peer in {who for who, _ in frames}
    assert breaker.fault is None


def test_the_flight_recorder_is_read_for_who_has_the_key_and_changes_nothing_by_itself() -> None:
    """Without torch.distributed there is none: that is reported, and no hook waits for a step."""
    made, received, _ = server()
    assert collectives.LOADED
    for key in ("", "another", KEY):
        asked = requests.AskCollectives(2**63 - 1, True, key)
        received.frames.append((key.encode() or b"a", wire.encode_message(asked)))
    made.turn()
    ((who, answer),) = received.answers
    assert who == KEY.encode()
    assert isinstance(answer, wire.Collectives)
    assert "not initialised" in answer.why_not
    assert made._recorder._collect is None
    assert not made._recorder.watched
    assert made._refused == 2


@pytest.mark.parametrize(
    "asked", [requests.AskProfile(9, 9, True, ""), requests.AskMemory(9, True, "")]
)
def test_a_window_is_opened_for_who_has_the_key_and_loaded_by_the_training_thread(
    asked: requests.AskProfile | requests.AskMemory,
) -> None:
    made, received, breaker = server()
    for key in ("", "another"):
        request = msgspec.structs.replace(asked, key=key)
        received.frames.append((b"a", wire.encode_message(request)))
    made.turn()
    assert made._refused == 2
    recorder: Any = made._recorder
    window_before = recorder._window
    assert window_before is None
    received.frames.append((b"a", with_key(asked)))
    made.turn()
    deep: Any = made._on_request._deep
    window = recorder._window
    assert window is not None
    loaded_before = deep._profiler
    recorder.mark(BACKWARD_ENTER)
    loaded = deep._profiler
    assert loaded_before is None, "the publisher imports nothing"
    assert loaded is not None
    assert recorder._window is None, "nothing is open before the next turn"
    assert received.answers == []
    assert breaker.fault is None


def test_a_history_is_given_once_however_often_it_is_asked_for() -> None:
    made, received, _ = server()
    received.frames = [
        (b"a", wire.encode_message(requests.Subscribe(wire.SCHEMA, 1, True, key=KEY)))
    ] * 60
    made.turn()
    assert [type(answer) for _, answer in received.answers] == [wire.Greeting, wire.Marks]


def test_the_largest_message_is_one_that_a_reader_takes() -> None:
    """A whole ring, every rare detail, every name at its longest."""
    made, received, _ = server()
    recorder = made._recorder
    name = "\N{SNAKE}" * LONGEST_NAME
    for number in range(MOST_NAMES + 9):
        recorder.name(f"{number:03}{name}"[:LONGEST_NAME])
    row = (2**63 - 1, "x" * 300, 9, 9, True, True, 9, 2**40, tuple(range(10**6, 10**6 + 200)), "x")
    for _ in range(40):
        for _ in range(1_000):
            recorder._put(-8)
        made.turn()
    for _ in range(2 * MOST_RARE):
        recorder._keep(LOADER, 2**62, (row, True))
    received.frames = [
        (b"a", wire.encode_message(requests.Subscribe(wire.SCHEMA, 1, True, key=KEY)))
    ]
    made.turn()
    _, reported = (answer for _, answer in received.answers)
    assert isinstance(reported, wire.Marks)
    assert len(reported.names) == MOST_NAMES
    assert len(reported.loaders) > 400
    assert len(reported.body) == RING * MARK_BYTES
