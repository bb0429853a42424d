"""Every message and observation, well-formed and made up: the monitor goes on, in bounded time."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from msgspec.structs import astuple, replace

from gpuwatch.probe.encoding import decode_request
from gpuwatch.tui import messages as wire
from gpuwatch.tui import requests
from gpuwatch.tui.formats.jsonlines import line
from gpuwatch.tui.formats.plain import PlainView
from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.model.observations import (
    Delivered,
    DumpSeen,
    Greeted,
    PageSeen,
)
from gpuwatch.tui.model.plausible import MOST, is_plausible
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from tests.hostile.shapes import anything
from tests.unit.session.making import HELLO, S, delivered, judged, steps

REQUESTS = some.one_of([anything(kind) for kind in requests.Request.__args__])
REPLIES = some.one_of([anything(kind) for kind in wire.Reply.__args__])


def tidied(value: Any, name: str = "") -> Any:
    """The same with figures that pass the door: what lies behind it is to be reached."""
    if isinstance(value, msgspec.Struct):
        named = zip(value.__struct_fields__, msgspec.structs.astuple(value), strict=True)
        fields = {name: tidied(inner, name) for name, inner in named}
        for first, last in (("start_ns", "end_ns"), ("gpu_start_ns", "gpu_end_ns")):
            if first in fields:
                fields |= zip((first, last), sorted((fields[first], fields[last])), strict=True)
        return type(value)(**fields)
    if isinstance(value, list):
        return [tidied(inner) for inner in value]
    if isinstance(value, dict):
        return {key: tidied(inner) for key, inner in value.items()}
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return max(name in ("count", "every"), abs(value) % MOST)


DELIVERED = anything(Delivered).map(tidied).filter(lambda seen: is_plausible(seen.batch))
DELIVERIES = some.one_of(
    DELIVERED, *(anything(kind) for kind in (Greeted, PageSeen, DumpSeen))
).map(
    lambda seen: replace(seen, t_ns=abs(seen.t_ns) % MOST)  # by our own clock
)
HOSTILE = some.lists(DELIVERIES, max_size=6)
"""What a session is given of what another process says. The rest is measured by us."""

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)


@SLOW
@given(REPLIES)
def test_a_reply_is_read_back_or_refused(reply: Any) -> None:
    try:
        frame = wire.encode_message(reply)
    except (OverflowError, UnicodeEncodeError):
        return
    try:
        assert wire.decode_reply(frame) == reply
    except ValueError:
        pass


@SLOW
@given(REQUESTS)
def test_a_request_is_read_back(request: Any) -> None:
    asked = decode_request(wire.encode_message(request))
    if isinstance(request, requests.Leave | requests.AskStacks):
        assert asked == request.__struct_config__.tag
    else:
        assert [getattr(asked, name) for name in request.__struct_fields__] == [*astuple(request)]


@SLOW
@given(seen=HOSTILE, t_ns=some.integers(0, 2**62))
def test_a_session_survives_what_no_probe_would_send(seen: list[Any], t_ns: int) -> None:
    session = Session(1, "train.py", 0, Engine())
    session.ingest(Greeted(t_ns=0, hello=HELLO))
    session.ingest(delivered(steps(30, forward_ms=1, data_ms=9), t_ms=300))
    for one in seen:
        session.ingest(one)
    for now_ns in (S, t_ns):
        snapshot = judged(session, now_ns, 1.8e9)
        report_lines(snapshot, 80)
        line(snapshot, True)
        PlainView(80).lines(snapshot)
        PlainView(80).closing(snapshot)
