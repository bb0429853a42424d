"""The socket against libzmq itself as the peer, and against peers that keep to nothing."""

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

from gpuwatch.probe import endpoint as under_test
from gpuwatch.probe.endpoint import MOST_CONNECTIONS, Endpoint
from gpuwatch.probe.state_page import SPARE, is_spare
from gpuwatch.probe.zmtp import GREETING, command, frame_header

DEALER = command(b"READY", b"\x0bSocket-Type\0\0\0\x06DEALER")
TURN_NS = 20_000_000


class Served:
    """An endpoint on a thread of its own that gives every message back."""

    def __init__(self, path: str) -> None:
        self.endpoint = Endpoint(path)
        self.endpoint.hold()
        self.received: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.endpoint.serve(TURN_NS)
            for peer, message in self.endpoint.receive(64):
                self.received.append(message)
                self.endpoint.send(peer, message * 1000 if message == b"long" else message)
        self.endpoint.close()

    def close(self) -> None:
        self._stop.set()
        self.endpoint.wake()
        self._thread.join(5)
        assert not self._thread.is_alive()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(str(tmp_path / "held" / "1-1.sock"))
    yield one
    one.close()


@contextmanager
def peer(served: Served, kind: int = zmq.DEALER, **options: Any) -> "Iterator[zmq.Socket[bytes]]":
    with zmq.Context() as context, context.socket(kind) as one:
        one.linger = 0
        for name, value in options.items():
            one.setsockopt(getattr(zmq, name), value)
        one.connect(f"ipc://{served.endpoint.path}")
        yield one


def answered(one: "zmq.Socket[bytes]", message: bytes = b"hello") -> bytes:
    one.send(message)
    assert one.poll(5_000), "no answer"
    return one.recv()


@contextmanager
def raw(served: Served, *sends: bytes) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(5)
        one.connect(served.endpoint.path)
        for data in sends:
            one.sendall(data)
        yield one


def ended(one: socket.socket) -> bool:
    """The other side closes, whatever it says before."""
    try:
        while one.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def test_a_heartbeat_is_answered_with_its_context(served: Served) -> None:
    with raw(served, GREETING + DEALER, command(b"PING", b"\0\x64context")) as one:
        text = b""
        while not text.endswith(command(b"PONG", b"context")):
            text += one.recv(4096)


def test_a_dealer_with_heartbeats(served: Served) -> None:
    """It leaves where none is answered within the timeout, which no machine is late for."""
    beats = {"HEARTBEAT_IVL": 5, "HEARTBEAT_TIMEOUT": 10_000, "HEARTBEAT_TTL": 10_000}
    with peer(served, **beats) as one:
        for length in (0, 1, 255, 256, 4096):
            assert answered(one, b"x" * length) == b"x" * length
        assert answered(one, b"long") == b"long" * 1000
        monitor = one.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        assert not monitor.poll(200), "several heartbeats, after which we are still connected"
        assert answered(one) == b"hello"


def test_a_dealer_with_a_name_of_its_own(served: Served) -> None:
    with peer(served, ROUTING_ID=b"\x01" * 255) as one:
        assert answered(one) == b"hello"


def test_a_router_as_the_peer(served: Served) -> None:
    with peer(served, zmq.ROUTER, CONNECT_ROUTING_ID=b"probe") as one:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            one.send_multipart([b"probe", b"hello"])
            if one.poll(100):
                break
        assert one.recv_multipart() == [b"probe", b"hello"]


@pytest.mark.parametrize("kind", [zmq.SUB, zmq.PUSH, zmq.PAIR])
def test_other_kinds_are_turned_away_and_hurt_nobody(served: Served, kind: int) -> None:
    with peer(served, kind) as other, peer(served) as one:
        if kind == zmq.SUB:
            other.setsockopt(zmq.SUBSCRIBE, b"")
        assert answered(one) == b"hello"
        time.sleep(0.3)
        assert answered(one) == b"hello"
    assert set(served.received) == {b"hello"}


def test_several_at_once_and_again(served: Served) -> None:
    for _ in range(5):
        with ExitStack() as stack:
            peers = [stack.enter_context(peer(served)) for _ in range(8)]
            for at, one in enumerate(peers):
                one.send(b"%d" % at)
            for at, one in enumerate(peers):
                assert one.poll(5_000)
                assert one.recv() == b"%d" % at


def test_byte_by_byte(served: Served) -> None:
    with raw(served) as one:
        for byte in GREETING + DEALER + frame_header(5) + b"hello":
            one.sendall(bytes((byte,)))
            time.sleep(0.001)
        text = b""
        while not text.endswith(b"hello"):
            text += one.recv(4096)


def test_two_messages_in_one_segment(served: Served) -> None:
    with raw(served, GREETING + DEALER + b"\0\x03one\0\x03two") as one:
        text = b""
        while not text.endswith(b"\0\x03one\0\x03two"):
            text += one.recv(4096)


@pytest.mark.parametrize("before", [b"", GREETING[:5], GREETING, GREETING + DEALER])
def test_garbage_at_each_state_ends_that_connection_alone(served: Served, before: bytes) -> None:
    with peer(served) as one:
        assert answered(one) == b"hello"
        with raw(served, before, b"\x99" * 300) as bad:
            assert ended(bad)
        assert answered(one) == b"hello"


def test_half_open_peers_are_ended_in_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "HANDSHAKE_NS", 200_000_000)
    with ExitStack() as stack:
        silent = [stack.enter_context(raw(served, GREETING[: 3 * at])) for at in range(20)]
        with peer(served) as one:
            assert answered(one) == b"hello"
        assert all(map(ended, silent))


def test_a_thousand_connections_that_stay(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's queue is full at some point; what got in is bounded, and goes when it may."""
    monkeypatch.setattr(under_test, "HANDSHAKE_NS", 100_000_000)
    with ExitStack() as stack:
        for _ in range(1_100):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            try:
                one.connect(served.endpoint.path)
            except BlockingIOError:
                time.sleep(0.001)
        assert len(served.endpoint._peers) <= MOST_CONNECTIONS
    with peer(served) as late:
        assert answered(late) == b"hello"


def test_a_seventeenth_takes_the_place_of_one_that_is_silent(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "IDLE_NS", 100_000_000)
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(raw(served, GREETING + DEALER))
        with peer(served) as one:
            assert answered(one) == b"hello"
        assert len(served.endpoint._peers) <= MOST_CONNECTIONS


def test_a_peer_that_does_not_read_costs_a_bounded_queue_and_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Endpoint(str(tmp_path / "held" / "1-1.sock"))
    one.hold()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(one.path)
        deaf.sendall(GREETING + DEALER + b"\0\x02hi")
        arrived: list[tuple[bytes, bytes]] = []
        while not arrived:
            arrived = one.receive(1)
        name = arrived[0][0]
        for _ in range(100):
            one.send(name, bytes(100_000))
        assert one._peers[name].waiting_bytes < 2_200_000
        for _ in range(150):
            deaf.sendall(200 * command(b"PING", b"\0\0" + bytes(16)))
            one.receive(64)
        assert one._peers[name].waiting_bytes < 2_200_000
        monkeypatch.setattr(under_test, "STALLED_NS", 0)
        one.receive(1)
        assert not one._peers
    one.close()


def test_the_first_message_of_a_connection_ends_the_wait(tmp_path: Path) -> None:
    """Whoever begins to watch is answered at once, and not at the end of a second."""
    endpoint = Endpoint(str(tmp_path / "held" / "1-1.sock"))
    endpoint.hold()
    with zmq.Context() as context, context.socket(zmq.DEALER) as one:
        one.linger = 0
        one.connect(f"ipc://{endpoint.path}")
        one.send(b"hello")
        endpoint.serve(60_000_000_000)
        seen = [endpoint.has_newcomer]
        assert [message for _, message in endpoint.receive(64)] == [b"hello"]
        seen.append(endpoint.has_newcomer)
        one.send(b"again")
        endpoint.serve(TURN_NS)
        assert [*seen, endpoint.has_newcomer] == [True, False, False], "it is known"
    endpoint.close()


def test_it_lets_go_of_descriptors_that_are_no_longer_its_own(tmp_path: Path) -> None:
    """`os.closerange` in the process, whose next file gets our number."""
    one = Endpoint(str(tmp_path / "held" / "1-1.sock"))
    one.hold()
    assert one._listener is not None
    number = one._listener.fileno()
    os.close(number)
    assert os.open(os.devnull, os.O_RDWR) == number
    one.serve(1_000_000)
    assert one.receive(1) == []
    one.wake()
    os.fstat(number)
    one.hold()
    one.close()
    os.fstat(number)
    os.close(number)


def test_near_the_limit_nothing_is_opened_and_nobody_is_let_in(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    one = Endpoint(str(tmp_path / "held" / "1-1.sock"))
    one.hold()
    newest = os.dup(0)
    os.close(newest)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest + SPARE, before[1]))
        assert not is_spare(0)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(one.path)
            for _ in range(3):
                one._accepts_ns = 0
                assert one.receive(1) == []
            assert not one._peers
        with pytest.raises(OSError, match="descriptors"):
            Endpoint(str(tmp_path / "held" / "2-2.sock")).hold()
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest + SPARE + 3, before[1]))
        assert is_spare(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    one.close()
    assert not os.path.exists(one.path)


def test_a_child_lets_go_and_the_parent_goes_on(served: Served) -> None:
    with peer(served) as one:
        assert answered(one) == b"hello"
        child = os.fork()
        if not child:
            served.endpoint.abandon()
            os._exit(not (served.endpoint._listener is None and not served.endpoint._peers))
        assert os.waitpid(child, 0)[1] == 0
        assert answered(one) == b"hello"
