"""The exporter's port, read by strangers."""

import http.client
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.fleet import http as exporter
from gpuwatch.tui.fleet.http import (
    MOST_CONNECTIONS,
    MOST_HEAD_BYTES,
    Access,
    Address,
    MetricsServer,
    access_of,
    address_of,
)
from tests.processes.monitored import until

PAGE = b"gpuwatch_target_up 1\n"
TOKEN = "0123456789abcdef"
FLOOD = 1_000


@contextmanager
def serving(
    access: Access | None = None, page: bytes = PAGE, host: str = "127.0.0.1"
) -> Iterator[tuple[MetricsServer, int]]:
    """A server, and its port."""
    server = MetricsServer(Address(host, 0), lambda kind: page, access or Access())
    port = server.open().port
    server.start()
    try:
        yield server, port
    finally:
        server.close()


def get(
    port: int, path: str = "/metrics", method: str = "GET", **fields: str
) -> tuple[int, bytes, str]:
    """Status, body and type of an answer."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    client.request(method, path, headers=fields)
    answer = client.getresponse()
    found = answer.status, answer.read(), answer.getheader("Content-Type") or ""
    client.close()
    return found


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def dropped(server: MetricsServer, reason: str) -> int:
    return server.dropped.get(reason, 0)


def test_a_page_and_nothing_else() -> None:
    with serving() as (server, port):
        assert get(port)[:2] == (200, PAGE)
        accepts = get(port, Accept="application/openmetrics-text;version=1.0.0")[2]
        assert accepts.startswith("application/openmetrics-text")
        assert get(port, method="HEAD")[:2] == (200, b"")
        assert get(port, "/healthz")[:2] == (200, b"ok\n")
        assert [get(port, "/../etc/passwd")[0], get(port, method="POST")[0]] == [404, 405]
        assert until(lambda: server.requests == {"200": 4, "404": 1, "405": 1})


@pytest.mark.parametrize(
    "sent",
    [b"\r\n\r\n", b"GET /metrics\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"a b c d\r\n\r\n"],
)
def test_rubbish_gets_a_400(sent: bytes) -> None:
    with serving() as (_, port), connected(port) as stranger:
        stranger.sendall(sent)
        assert stranger.makefile("rb").read().startswith(b"HTTP/1.1 400 ")
        assert get(port)[0] == 200


def test_a_huge_request_is_cut() -> None:
    with serving() as (server, port), connected(port) as stranger:
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            stranger.sendall(b"x" * MOST_HEAD_BYTES * 10_000)
        assert get(port)[0] == 200
        assert until(lambda: server.requests.get("431") or server.dropped)


def test_without_the_token_there_is_no_page() -> None:
    with serving(Access(token=TOKEN)) as (server, port):
        for given in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
            status, body, _ = get(port, **given)
            assert (status, PAGE in body) == (401, False)
        assert get(port, "/nowhere")[0] == 401
        assert get(port, "/healthz")[0] == 200
        assert get(port, Authorization=f"Bearer {TOKEN}")[:2] == (200, PAGE)
        assert until(lambda: server.requests.get("401") == 4)
        assert re.fullmatch(r"4 requests were not served \(status 401 4; .*\)", server.news())
        assert server.news() == ""


def test_a_request_that_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "WHOLE_S", 0.3)
    with serving() as (server, port), connected(port) as loris:
        loris.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert loris.recv(1) == b""
        assert until(lambda: dropped(server, "slow")) == 1


def test_an_answer_that_nobody_reads_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "WHOLE_S", 0.3)
    with serving(page=b"x" * 50_000_000) as (server, port), connected(port) as reader:
        reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert until(lambda: dropped(server, "slow")) == 1


@pytest.mark.slow
def test_a_thousand_connections_leave_room_for_the_one_that_asks() -> None:
    with serving() as (server, port), ExitStack() as flood:
        for _ in range(FLOOD):
            flood.enter_context(connected(port)).sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert get(port)[:2] == (200, PAGE)
        assert until(lambda: dropped(server, "crowded") >= FLOOD - MOST_CONNECTIONS)
        assert "crowded" in server.news()


def test_a_stranger_that_floods_does_not_crowd_out_another_address() -> None:
    with serving(host="0.0.0.0") as (server, port), ExitStack() as flood:
        patient = socket.create_connection(("127.0.0.1", port), 20, ("127.0.0.2", 0))
        patient.sendall(b"GET /metrics HTTP/1.1\r\n")
        for _ in range(5 * MOST_CONNECTIONS):
            flood.enter_context(connected(port))
        assert until(lambda: dropped(server, "crowded") >= 4 * MOST_CONNECTIONS)
        patient.sendall(b"\r\n")
        assert patient.makefile("rb").read().endswith(PAGE)


def test_many_readers_at_once_get_whole_pages_made_seldom() -> None:
    made: list[str] = []

    def page(kind: str) -> bytes:
        made.append(kind)
        return PAGE * 10_000

    server = MetricsServer(Address("127.0.0.1", 0), page, Access())
    port = server.open().port
    server.start()
    found: list[tuple[int, int]] = []

    def reads() -> None:
        for _ in range(20):
            status, body, _ = get(port)
            found.append((status, len(body)))

    threads = [threading.Thread(target=reads) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.close()
    assert found == [(200, len(PAGE) * 10_000)] * 160
    assert len(made) < 80


def test_a_page_that_cannot_be_made_is_a_500_and_the_server_lives() -> None:
    def page(kind: str) -> bytes:
        raise ZeroDivisionError("in a metric")

    server = MetricsServer(Address("127.0.0.1", 0), page, Access())
    port = server.open().port
    server.start()
    assert [get(port)[0], get(port)[0], get(port, "/healthz")[0]] == [500, 500, 200]
    server.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One for localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    try:
        subprocess.run(
            [*command, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=30
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return cert, key


def guarded(certificate: tuple[Path, Path], tmp_path: Path) -> Access:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    return access_of(Address("0.0.0.0", 0), *certificate, token)


def test_over_tls_with_the_token(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    with serving(guarded(certificate, tmp_path)) as (server, port):
        trusts = ssl.create_default_context(cafile=str(certificate[0]))
        client = http.client.HTTPSConnection("localhost", port, timeout=20, context=trusts)
        client.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert client.getresponse().read() == PAGE
        with connected(port) as stranger:
            stranger.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            stranger.makefile("rb").read()
        assert until(lambda: dropped(server, "tls")) == 1


@pytest.mark.slow
def test_a_thousand_that_begin_no_handshake(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    with serving(guarded(certificate, tmp_path)) as (server, port), ExitStack() as flood:
        for _ in range(FLOOD):
            flood.enter_context(connected(port))
        trusts = ssl.create_default_context(cafile=str(certificate[0]))
        client = http.client.HTTPSConnection("localhost", port, timeout=20, context=trusts)
        client.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert client.getresponse().read() == PAGE
        assert until(lambda: dropped(server, "crowded") >= FLOOD - 2 * MOST_CONNECTIONS)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "no.such.host.invalid"])
def test_beyond_this_host_only_with_tls_and_a_token(
    host: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    for given in ((None, None, None), (*certificate, None), (None, None, token)):
        with pytest.raises(UsageError, match="other hosts can reach"):
            access_of(Address(host, 9479), *given)
    assert access_of(Address(host, 9479), *certificate, token).tls is not None


@pytest.mark.parametrize("text", ["short", "", "sixteen chars\x00\x1b[m", "ä" * 32])
def test_a_token_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(UsageError, match="holds no token"):
        access_of(Address("127.0.0.1", 1), None, None, tmp_path / "token")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9479", Address("127.0.0.1", 9479)),
        ("127.0.0.1", Address("127.0.0.1", 9479)),
        ("node7:80", Address("node7", 80)),
        ("[::1]:80", Address("::1", 80)),
        ("::1", Address("::1", 9479)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", ":80", "a:b", "a:99999", "[::1]x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="no address"):
        address_of(text)


def test_a_port_that_is_taken_is_reported() -> None:
    with serving() as (_, port), pytest.raises(UsageError, match="cannot be listened on"):
        MetricsServer(Address("127.0.0.1", port), lambda kind: PAGE, Access()).open()
