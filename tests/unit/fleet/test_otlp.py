"""Metrics by OTLP/HTTP."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.fleet import otlp
from gpuwatch.tui.fleet.otlp import Otlp, OtlpError, endpoint, exported
from gpuwatch.tui.fleet.push import Push
from tests.processes.monitored import until
from tests.unit.faces.pictures import BY_GPM, GPU, picture
from tests.unit.fleet.making import HISTOGRAM, watched
from tests.unit.fleet.making import exported as families

AT = 1_700_000_000.25


class Collector:
    """What was posted to it; answers with `status` and `answer`, or with a redirect."""

    def __init__(self) -> None:
        self.status, self.answer = 200, b"{}"
        self.elsewhere: str | None = None
        self.posted: list[tuple[str, dict[str, str], Any]] = []
        self.read: list[str] = []
        """Paths that were only read."""


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A collector, and its URL."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.posted.append((self.path, headers, json.loads(body)))
            self._answer()

        def do_GET(self) -> None:
            collector.read.append(self.path)
            self._answer()

        def _answer(self) -> None:
            self.send_response(collector.status)
            if collector.elsewhere is not None:
                self.send_header("Location", collector.elsewhere)
            self.end_headers()
            self.wfile.write(collector.answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_page() -> Any:
    return families(watched(picture(gpus=(GPU,), activity=(BY_GPM,), histogram=HISTOGRAM)))


def metrics_of(body: Any) -> dict[str, Any]:
    (resource,) = body["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    return {metric["name"]: metric for metric in scope["metrics"]}


def test_gauges_sums_and_histograms() -> None:
    found = metrics_of(exported(a_page(), AT))
    (total,) = found["gpuwatch_steps"]["sum"]["dataPoints"]
    assert (total["asDouble"], total["timeUnixNano"]) == (18204.0, str(round(AT * 1e9)))
    assert found["gpuwatch_steps"]["sum"]["isMonotonic"] is True
    (steps,) = found["gpuwatch_step_seconds"]["histogram"]["dataPoints"]
    assert (steps["count"], steps["sum"]) == (str(HISTOGRAM.steps), HISTOGRAM.sum_s)
    assert len(steps["bucketCounts"]) == len(steps["explicitBounds"]) + 1
    assert [found[f"gpuwatch_{name}"]["unit"] for name in ("step_seconds", "phase_ratio")] == [
        "s",
        "1",
    ]
    (verdict,) = found["gpuwatch_verdict_info"]["gauge"]["dataPoints"]
    assert {"key": "kind", "value": {"stringValue": "input"}} in verdict["attributes"]


def test_the_reference_messages_take_it() -> None:
    service = pytest.importorskip(
        "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2",
        reason="not installed: pip install opentelemetry-proto",
    )
    from google.protobuf import json_format

    body = exported(a_page(), AT)
    taken = json_format.ParseDict(body, service.ExportMetricsServiceRequest())
    names = [one.name for one in taken.resource_metrics[0].scope_metrics[0].metrics]
    assert names == list(metrics_of(body))


def test_it_is_posted_with_the_headers_that_opentelemetry_names() -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b,x-tenant=lab"}
    with collecting() as (collector, url):
        Otlp(url, environ).send(a_page(), AT)
    ((path, headers, body),) = collector.posted
    assert path == "/v1/metrics"
    assert (headers["content-type"], headers["api-key"]) == ("application/json", "a b")
    assert "gpuwatch_steps" in metrics_of(body)


def test_what_a_collector_refuses_is_an_error() -> None:
    with collecting() as (collector, url):
        collector.answer = b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "old"}}'
        with pytest.raises(OtlpError, match="3 points refused: old"):
            Otlp(url).send(a_page(), AT)
        collector.status = 403
        with pytest.raises(OtlpError, match="status 403"):
            Otlp(url).send(a_page(), AT)
    with pytest.raises(OtlpError, match="refused"):
        Otlp(url).send(a_page(), AT)


DRIPS = 200
"""Bytes, each well within what one read may take."""


@pytest.mark.parametrize(
    "begins", [b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "]
)
def test_an_answer_that_drips_is_ended(begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its body or its head: it held every later push up, and nobody was told."""
    monkeypatch.setattr(otlp, "WITHIN_S", 0.5)
    is_over = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(begins)
            for _ in range(DRIPS):
                if is_over.wait(0.02):
                    break
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        dripping = threading.Thread(target=drip, args=(server,))
        dripping.start()
        try:
            with pytest.raises(OtlpError, match="no whole answer within"):
                Otlp(f"http://127.0.0.1:{server.getsockname()[1]}").send(a_page(), AT)
        finally:
            is_over.set()
            dripping.join()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_the_key_to_another_host(status: int) -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b"}
    with collecting() as (collector, url), collecting() as (other, other_url):
        collector.status, collector.elsewhere = status, f"{other_url}/login"
        with pytest.raises(OtlpError, match=f"status {status}: it redirects"):
            Otlp(url, environ).send(a_page(), AT)
    assert len(collector.posted) == 1
    assert (other.posted, other.read) == ([], [])


@pytest.mark.parametrize(
    ("url", "posted_to"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("https://otlp.example/", "https://otlp.example/v1/metrics"),
        ("https://otlp.example/otlp/v1/metrics", "https://otlp.example/otlp/v1/metrics"),
    ],
)
def test_urls(url: str, posted_to: str) -> None:
    assert endpoint(url) == posted_to


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://a", "http://", "file:///etc/passwd"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="no URL of a collector"):
        endpoint(url)


class Failing:
    """A destination that fails until it is mended."""

    name = "somewhere"

    def __init__(self) -> None:
        self.is_broken = True
        self.calls = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.is_closed = False

    def open(self) -> None:
        pass

    def send(self, families: Any, at_unix: float) -> None:
        self.calls += 1
        self.may_go_on.wait(30)
        if self.is_broken:
            raise OSError("nobody\nanswers")

    def close(self) -> None:
        self.is_closed = True


def test_a_push_that_fails_is_reported_once_and_when_it_goes_on() -> None:
    destination, lines = Failing(), list[str]()
    push = Push(destination, lines.append)
    for calls in (1, 2, 3):
        push.send([], AT)
        assert until(lambda calls=calls: destination.calls == calls)  # type: ignore[misc]
    destination.is_broken = False
    push.send([], AT)
    assert until(lambda: push.delivered == 1)
    push.close()
    assert lines == [
        "somewhere: not delivered: nobody answers",
        "somewhere: delivers again",
    ]
    assert destination.is_closed


def test_a_slow_destination_gets_the_newest_and_holds_nobody_up() -> None:
    destination = Failing()
    destination.is_broken = False
    destination.may_go_on.clear()
    push = Push(destination, lambda line: None)
    push.send([], AT)
    assert until(lambda: destination.calls == 1)
    for _ in range(1_000):
        push.send([], AT)
    destination.may_go_on.set()
    push.close()
    assert destination.calls == 2
