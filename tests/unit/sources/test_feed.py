"""What the monitor asks of a probe, on a held clock and a real socket."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from gpuwatch.probe.encoding import (
    Subscribe,
    decode_request,
    encode_bye,
    encode_greeting,
)
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.peers import PEER_TIMEOUT_NS
from gpuwatch.tui.messages import Hello
from gpuwatch.tui.model.observations import Link, Missing
from gpuwatch.tui.sources.feed import CHECK_NS, FORGOTTEN_NS, WATCHING_NS, FeedSource

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
    feed = FeedSource(Hello(**vars(Identity(endpoint, None))))
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


def test_a_probe_that_was_taken_out_and_is_back_is_subscribed_to_anew(tmp_path: Path) -> None:
    """A cell of a notebook that is run again."""
    tmp_path.chmod(0o700)
    identity = Identity(f"ipc://{tmp_path}/1.sock", None)
    feed = FeedSource(Hello(**vars(identity)))
    now_ns = 0
    with zmq.Context() as context:
        for _ in range(2):
            with context.socket(zmq.ROUTER) as socket:
                socket.bind(f"ipc://{tmp_path}/1.sock")
                if not now_ns:
                    feed.open()
                for passed_ns in (CHECK_NS, 1):
                    now_ns += passed_ns
                    feed.poll(now_ns)
                assert socket.poll(LIMIT_MS), "somebody subscribes"
                peer, frame = socket.recv_multipart()
                request = decode_request(frame)
                assert isinstance(request, Subscribe)
                assert request.history
                socket.send_multipart([peer, encode_greeting(identity, now_ns)])
                socket.send_multipart([peer, encode_bye("uninstalled", 9)])
                links: list[str] = []
                while links[-2:] != ["connected", "left"]:
                    now_ns += 1
                    links += [one.state for one in feed.poll(now_ns) if isinstance(one, Link)]
            (tmp_path / "1.sock").unlink(missing_ok=True)
            assert feed.poll(now_ns + 60 * CHECK_NS) == [], "nobody is missed meanwhile"
            now_ns += 60 * CHECK_NS
    feed.close()


def test_what_a_probe_forgets_after_is_what_a_monitor_takes_it_for() -> None:
    assert FORGOTTEN_NS == PEER_TIMEOUT_NS


def test_a_directory_that_is_missing_is_looked_at_again_before_anything_connects(
    tmp_path: Path,
) -> None:
    """As when /tmp was cleaned: until the probe makes it again, another user can."""
    folder, elsewhere = tmp_path / "gpuwatch", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        socket.bind(f"ipc://{elsewhere}/1.sock")
        feed = FeedSource(Hello(**vars(Identity(f"ipc://{folder}/1.sock", None))))
        feed.open()
        assert feed.poll(0) == []
        _, missing = feed.poll(CHECK_NS)
        assert isinstance(missing, Missing)
        assert missing.reason == "the probe's socket is not there"
        elsewhere.rename(folder)
        (refused,) = feed.poll(2 * CHECK_NS)
        assert isinstance(refused, Missing)
        assert refused.reason == f"{folder} cannot be trusted"
        assert f"of user {os.getuid()} that nobody else can enter. Remove it" in refused.fix
        assert feed.poll(3 * CHECK_NS) == [], "reported once"
        assert not socket.poll(100), "nobody connects"
        folder.chmod(0o700)
        assert feed.poll(4 * CHECK_NS) == []
        feed.poll(4 * CHECK_NS + 1)
        assert socket.poll(LIMIT_MS)
        feed.close()
