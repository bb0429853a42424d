"""The page of metrics over HTTP, for readers that need not be friendly.

One thread, at most `MOST_CONNECTIONS` at once, `WHOLE_S` for each from its first byte to its last,
`MOST_HEAD_BYTES` of a request. The standard library's servers bound none of these.
"""

import asyncio
import hmac
import ipaddress
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import UsageError
from .openmetrics import content_type

DEFAULT_PORT: Final = 9479
MOST_CONNECTIONS: Final = 32
"""Prometheus keeps one, a pair of them two."""
WHOLE_S: Final = 10.0
"""Prometheus' own limit of a scrape (scrape_timeout)."""
MOST_HEAD_BYTES: Final = 8192
"""Prometheus sends 300; most servers take 8 KiB."""
PACE_S: Final = 0.002
"""Between two connections: a flood gets 500 of them a second, 0.1 ms of our CPU each."""
FRESH_S: Final = 0.25
"""A page is made anew no more often than snapshots come."""
NO_FILES_S: Final = 0.5
"""Until the next try where this process may open no more files."""
LEAST_TOKEN: Final = 16
"""Characters. Shorter ones can be guessed over a network."""

Page = Callable[[str], bytes]
"""The metrics in the format of a content type."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """ "127.0.0.1:9479"."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this host reaches it."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError:
            return False
        return all(ipaddress.ip_address(str(row[4][0])).is_loopback for row in found)


def address_of(text: str) -> Address:
    """Of "9479", "HOST", "HOST:9479", "[::1]:9479". Raises UsageError."""
    if text.isascii() and text.isdecimal():
        host, port = "127.0.0.1", text
    elif text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise UsageError(
            f"{text!r} is no address to listen on",
            "It is a port, a host, or both: 9479, localhost, 127.0.0.1:9479, [::1]:9479",
        )
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read the page, and how."""

    token: str | None = None
    tls: ssl.SSLContext | None = None


def access_of(
    address: Address, certificate: Path | None, key: Path | None, token_file: Path | None
) -> Access:
    """What guards an address. Raises UsageError where one beyond this host has not all of it, or a
    file is of no use."""
    lacks = [
        option
        for option, given in (
            ("--tls-cert FILE", certificate),
            ("--tls-key FILE", key),
            ("--token-file FILE", token_file),
        )
        if given is None
    ]
    if lacks and not address.is_loopback:
        raise UsageError(
            f"other hosts can reach {address.text}: that needs {', '.join(lacks)}",
            "Prometheus then scrapes with scheme: https and authorization: credentials_file.",
            "Or listen here alone (--prometheus) and scrape through ssh -L. See docs/fleet",
        )
    token = None if token_file is None else _token(token_file)
    if (certificate is None) != (key is None):
        raise UsageError("TLS needs both --tls-cert and --tls-key")
    if certificate is None or key is None:
        return Access(token)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{certificate} and {key} are no certificate and key", str(error)
        ) from None
    return Access(token, context)


def _no_password() -> str:
    raise ValueError("the key is encrypted; nobody can be asked for its password")


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"no token can be read from {path}", str(error)) from None
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"{path} holds no token",
            f"It is a line of {LEAST_TOKEN} or more printable characters.",
            f"To make one: openssl rand -hex 32 > {path}",
        )
    return token


STATUSES: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"

    def as_bytes(self, with_body: bool) -> bytes:
        head = [
            f"HTTP/1.1 {self.status} {STATUSES[self.status]}",
            f"Content-Type: {self.kind}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
            "X-Content-Type-Options: nosniff",
        ]
        if self.status == 401:
            head.append("WWW-Authenticate: Bearer")
        text = "\r\n".join([*head, "", ""]).encode()
        return text + self.body if with_body else text


class MetricsServer:
    """Listens from `open` on, answers from `start` on, until `close`."""

    def __init__(self, address: Address, page: Page, access: Access) -> None:
        self._address = address
        self._page = page
        self._access = access
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._talks: dict[asyncio.Task[None], _Talk] = {}
        """Connections, the oldest first."""
        self._pages: dict[str, tuple[float, bytes]] = {}
        self._requests: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()
        """Of what went wrong, what `news` has reported."""
        self._from: Counter[str] = Counter()
        """By address, what went wrong since `news` was asked."""

    def open(self) -> Address:
        """Listen; returns the address with its port. Raises UsageError where that cannot be."""
        host, port = self._address.host, self._address.port
        try:
            family, *_, where = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._listener = socket.create_server(where[:2], family=family, backlog=128)
        except OSError as error:
            raise UsageError(
                f"{self._address.text} cannot be listened on", str(error.strerror or error)
            ) from None
        self._listener.setblocking(False)
        return Address(host, self._listener.getsockname()[1])

    def start(self) -> None:
        """Answer, on a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, and every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(2.0)
        if self._listener is not None:
            self._listener.close()

    @property
    def requests(self) -> Mapping[str, int]:
        """Answers by status."""
        return dict(self._requests)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Connections without an answer: `slow`, `crowded` out by newer ones, `unfinished`, `tls`,
        or because there were `no files`."""
        return dict(self._dropped)

    def news(self) -> str:
        """What went wrong since the last call, in a line; "" for nothing."""
        refused = {f"status {name}": n for name, n in self._requests.items() if name != "200"}
        all_of_it = Counter({**refused, **self._dropped})
        new = all_of_it - self._reported
        self._reported = all_of_it
        worst, self._from = self._from.most_common(1), Counter()
        if not new:
            return ""
        parts = ", ".join(f"{name} {times:,}" for name, times in new.most_common())
        most = f"; most from {worst[0][0]}" if worst else ""
        return f"{sum(new.values()):,} requests were not served ({parts}{most})"

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(lambda *_: None)  # a stranger's connection is no news of its own
        loop.create_task(self._accept())
        try:
            loop.run_forever()
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._listener)
            except OSError:
                self._dropped["no files"] += 1
                await asyncio.sleep(NO_FILES_S)
                continue
            if len(self._talks) >= MOST_CONNECTIONS:
                self._crowd_out()
            talk = _Talk(connection, str(peer[0]))
            task = self._loop.create_task(self._serve(talk))
            self._talks[task] = talk
            task.add_done_callback(self._talks.pop)
            await asyncio.sleep(PACE_S)

    def _crowd_out(self) -> None:
        """The oldest connection of the address that has most of them: who asks seldom and at once,
        as Prometheus does, is served in the midst of a flood."""
        open_talks = [talk for talk in self._talks.values() if not talk.fate]
        if open_talks:
            most = Counter(talk.peer for talk in open_talks).most_common(1)[0][0]
            next(talk for talk in open_talks if talk.peer == most).end("crowded")

    async def _serve(self, talk: "_Talk") -> None:
        limit = self._loop.call_later(WHOLE_S, talk.end, "slow")
        answer: _Answer | None = None
        try:
            answer = await self._talk(talk)
        except (ssl.SSLError, ConnectionAbortedError):
            talk.fate = talk.fate or "tls"
        except (OSError, asyncio.IncompleteReadError):
            talk.fate = talk.fate or "unfinished"
        finally:
            limit.cancel()
            talk.connection.close()
        if talk.fate:
            self._dropped[talk.fate] += 1
        elif answer is not None:
            self._requests[str(answer.status)] += 1
        if answer is None or answer.status != 200 or talk.fate:
            self._from[talk.peer] += 1
            while len(self._from) > MOST_CONNECTIONS:
                del self._from[min(self._from, key=self._from.__getitem__)]

    async def _talk(self, talk: "_Talk") -> _Answer:
        reader = asyncio.StreamReader(limit=MOST_HEAD_BYTES, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol,
            talk.connection,
            ssl=self._access.tls,
            ssl_handshake_timeout=WHOLE_S if self._access.tls else None,
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        transport.set_write_buffer_limits(high=0)
        try:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                answer, with_body = _Answer(431), True
            else:
                answer, with_body = self._answer(head)
            writer.write(answer.as_bytes(with_body))
            await writer.drain()
            return answer
        finally:
            writer.close()
            await writer.wait_closed()

    def _answer(self, head: bytes) -> tuple[_Answer, bool]:
        """The answer to a request, and whether its body is wanted."""
        first, *rows = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _Answer(400), True
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _Answer(405), True
        fields = {
            name.strip().lower(): value.strip()
            for name, colon, value in (row.partition(":") for row in rows)
            if colon
        }
        path = target.partition("?")[0]
        if path == "/healthz":
            answer = _Answer(200, b"ok\n")
        elif not self._may_read(fields.get("authorization", "")):
            answer = _Answer(401, b"a bearer token is needed\n")
        elif path == "/metrics":
            answer = self._metrics(content_type(fields.get("accept", "")))
        elif path == "/":
            answer = _Answer(200, b"gpuwatch: metrics are at /metrics\n")
        else:
            answer = _Answer(404, b"metrics are at /metrics\n")
        return answer, method == "GET"

    def _may_read(self, authorization: str) -> bool:
        token = self._access.token
        if token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(
            given.strip().encode("latin-1", "replace"), token.encode()
        )

    def _metrics(self, kind: str) -> _Answer:
        made = self._pages.get(kind)
        if made is None or self._loop.time() - made[0] > FRESH_S:
            try:
                made = self._loop.time(), self._page(kind)
            except Exception as error:  # a mistake of ours: the client gets it, the next may work
                return _Answer(500, f"{type(error).__name__}: {error}\n".encode())
            self._pages[kind] = made
        return _Answer(200, made[1], kind)


class _Talk:
    """One connection."""

    def __init__(self, connection: socket.socket, peer: str) -> None:
        self.connection = connection
        self.peer = peer
        self.fate = ""
        """Why it ends without an answer."""

    def end(self, fate: str) -> None:
        """Cut it: whoever waits for the other side goes on, and finds it gone."""
        self.fate = self.fate or fate
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is gone already
