"""Metrics by OTLP/HTTP in its JSON encoding, as OpenTelemetry's Collector takes them (port 4318).

The specification gives JSON the same standing as protobuf (OTLP 1.0, "OTLP/HTTP"), and the standard
library implements it. OpenTelemetry's SDK wants to count by itself; what is counted here is final.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from threading import Timer
from typing import Any, Final
from urllib import error, parse, request

from ..errors import DISTRIBUTION, UsageError, version_of
from ..steps import STEP_BOUNDS_S, StepHistogram
from .host import host_name
from .metrics import Family, Labels, Sample

PATH: Final = "/v1/metrics"
WITHIN_S: Final = 10.0
"""OpenTelemetry's own limit of an export (OTEL_EXPORTER_OTLP_TIMEOUT)."""
MOST_ANSWER_BYTES: Final = 65_536
HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
CUMULATIVE: Final = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE."""
UNITS: Final = {"seconds": "s", "bytes": "By", "ratio": "1", "": "1"}


class OtlpError(Exception):
    """The collector did not take them."""


class _NoRedirects(request.HTTPRedirectHandler):
    """A redirect would take the headers, keys among them, to another host, and the metrics nowhere:
    a POST becomes a GET there, whose page looks like success."""

    def redirect_request(self, *_: Any) -> None:
        """None to follow: the answer is an error like any other."""


class _Limit:
    """Ends an exchange that takes too long: a timeout of urllib's begins anew with each byte that
    comes, and a collector, or a proxy before it, may send one now and then for ever."""

    def __init__(self) -> None:
        self._is_over = False
        self._opened: list[socket.socket] = []
        self._timer = Timer(WITHIN_S, self._end)
        self._timer.daemon = True

    def __enter__(self) -> "_Limit":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Raises OtlpError where it was ended, whatever has come of it."""
        self._timer.cancel()
        for one in self._opened:
            one.close()
        if self._is_over:
            raise OtlpError(f"no whole answer within {WITHIN_S:.0f} s")

    def opened(self, connection: socket.socket) -> None:
        """A connection of the exchange. What is kept of it is no socket that TLS wraps, or that the
        client closes behind the head of an answer."""
        self._opened.append(connection.dup())
        if self._is_over:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        for one in list(self._opened):
            with suppress(OSError):  # its other end has closed it, or it has just been let go of
                one.shutdown(socket.SHUT_RDWR)


Opened = Callable[[socket.socket], None]


class _Http(HTTPConnection):
    """Shows its socket as it is opened."""

    opened: Opened

    def connect(self) -> None:
        """Connect."""
        create = self._create_connection  # type: ignore[has-type]

        def shown(*args: Any) -> socket.socket:
            made: socket.socket = create(*args)
            self.opened(made)  # before a proxy answers
            return made

        self._create_connection = shown
        super().connect()


class _Https(HTTPSConnection, _Http):
    """The same, before TLS begins."""


class _Opens(request.HTTPHandler, request.HTTPSHandler):
    """Opens what a limit ends."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, wanted: request.Request) -> Any:
        """As the standard's own."""
        return self.do_open(partial(self._made, _Http), wanted)

    def https_open(self, wanted: request.Request) -> Any:
        """As the standard's own."""
        return self.do_open(partial(self._made, _Https), wanted)

    def _made(self, kind: type[_Http], host: str, **given: Any) -> _Http:
        connection = kind(host, **given)
        connection.opened = self._limit.opened
        return connection


class Otlp:
    """A collector."""

    def __init__(self, url: str, environ: Mapping[str, str] = os.environ) -> None:
        """Raises UsageError where `url` is none."""
        self.name = f"otlp {_without_secrets(url)}"
        self._url = endpoint(url)
        self._headers = _headers(environ.get(HEADERS, ""))

    def open(self) -> None:
        """Each push is a request of its own."""

    def send(self, families: Sequence[Family], at_unix: float) -> None:
        """Raises OtlpError, or OSError where nobody answers."""
        body = json.dumps(exported(families, at_unix)).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        posted = request.Request(self._url, body, headers, method="POST")
        with _Limit() as limit:
            answer = _answer_to(posted, limit)
        _check_taken(answer)

    def close(self) -> None:
        """Nothing is held."""


def _answer_to(posted: request.Request, limit: _Limit) -> bytes:
    """Raises OtlpError where it is refused, or OSError."""
    opener = request.build_opener(_NoRedirects, _Opens(limit))
    try:
        with opener.open(posted, timeout=WITHIN_S) as reply:
            answer: bytes = reply.read(MOST_ANSWER_BYTES)
            return answer
    except error.HTTPError as refused:
        if 300 <= refused.code < 400:
            raise OtlpError(
                f"status {refused.code}: it redirects, which is not followed: "
                "give the URL that it leads to"
            ) from None
        why = refused.read(200).decode(errors="replace")
        raise OtlpError(f"status {refused.code} {why}") from None
    except error.URLError as failed:
        raise OtlpError(str(failed.reason)) from None


def endpoint(url: str) -> str:
    """Where to post to: a URL without a path gets the standard one. Raises UsageError."""
    parts = parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is no URL of a collector", "As http://localhost:4318")
    return parse.urlunsplit(parts._replace(path=parts.path.rstrip("/") or PATH))


def exported(families: Sequence[Family], at_unix: float) -> dict[str, Any]:
    """An ExportMetricsServiceRequest. 64-bit integers are strings in protobuf's JSON."""
    at = str(round(at_unix * 1e9))
    resource = _attributes((("service.name", "gpuwatch"), ("host.name", host_name())))
    scope = {"name": "gpuwatch", "version": version_of(DISTRIBUTION)}
    metrics = [_metric(family, at) for family in families]
    scoped = [{"scope": scope, "metrics": metrics}]
    return {
        "resourceMetrics": [{"resource": {"attributes": resource}, "scopeMetrics": scoped}],
    }


def _metric(family: Family, at: str) -> dict[str, Any]:
    metric = family.metric
    points = [_point(sample, at) for sample in family.samples]
    head = {
        # A collector adds `_total` of its own where it writes for Prometheus.
        "name": metric.name.removesuffix("_total"),
        "description": metric.help,
        "unit": UNITS[metric.unit],
    }
    if metric.type == "histogram":
        return {**head, "histogram": {"dataPoints": points, "aggregationTemporality": CUMULATIVE}}
    if metric.type == "counter":
        summed = {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": True}
        return {**head, "sum": summed}
    return {**head, "gauge": {"dataPoints": points}}


def _point(sample: Sample, at: str) -> dict[str, Any]:
    head = {"attributes": _attributes(sample.labels), "timeUnixNano": at}
    if isinstance(sample.value, StepHistogram):
        return {
            **head,
            "count": str(sample.value.steps),
            "sum": sample.value.sum_s,
            "bucketCounts": [str(count) for count in sample.value.counts],
            "explicitBounds": list(STEP_BOUNDS_S),
        }
    return {**head, "asDouble": float(sample.value)}


def _attributes(labels: Labels) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in labels]


def _check_taken(answer: bytes) -> None:
    """Raises OtlpError where some points were refused."""
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess") or {}
    except (ValueError, AttributeError):
        return  # it took them, and says so in its own way
    if int(partial.get("rejectedDataPoints", 0)):
        raise OtlpError(
            f"{partial['rejectedDataPoints']} points refused: {partial.get('errorMessage', '')}"
        )


def _headers(text: str) -> dict[str, str]:
    """Of "api-key=abc,x-tenant=lab", URL-encoded, as OpenTelemetry's own exporters read it."""
    pairs = (entry.partition("=") for entry in text.split(",") if entry.strip())
    return {name.strip(): parse.unquote(value.strip()) for name, _, value in pairs}


def _without_secrets(url: str) -> str:
    parts = parse.urlsplit(url)
    return parts.hostname or url
