"""What the monitor asks of a probe, on a held clock and a real socket."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
import zmq

from probe.identity import identify
from probe.peers import PEER_TIMEOUT_NS
from probe.wire.messages import Hello, Subscribe, decode_request
from tui.sources.feed import FORGOTTEN_NS, WATCHING_NS, FeedSource

LIMIT_MS = 10_000


@pytest.fixture
def probe_end(tmp_path: Path) -> "Iterator[tuple[zmq.Socket[bytes], str]]":
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        endpoint = f"ipc://{tmp_path}/1.sock"
        socket.bind(endpoint)
        yield socket, endpoint


def test_a_monitor_that_was_stopped_asks_for_what_it_has_missed(
    probe_end: "tuple[zmq.Socket[bytes], str]",
) -> None:
    socket, endpoint = probe_end
    feed = FeedSource(Hello(**asdict(identify(endpoint, None))))
    feed.open()
    asked = []
    for now_ns in (0, WATCHING_NS, 2 * WATCHING_NS + FORGOTTEN_NS):
        seen = feed.poll(now_ns)
        assert socket.poll(LIMIT_MS)
        request = decode_request(socket.recv_multipart()[1])
        assert isinstance(request, Subscribe)
        asked.append(request.history)
    feed.close()
    assert asked == [True, False, True]
    assert seen == [], "its own silence"


def test_what_a_probe_forgets_after_is_what_a_monitor_takes_it_for() -> None:
    assert FORGOTTEN_NS == PEER_TIMEOUT_NS
