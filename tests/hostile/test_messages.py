"""Every message and observation, well-formed and made up: the monitor goes on, in bounded time."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from probe.wire import messages as wire
from tests.hostile.shapes import anything
from tests.unit.session.making import HELLO, S, delivered, steps
from tui.jsonlines import line
from tui.observations import Delivered, DumpSeen, Greeted, PageSeen
from tui.plain import PlainView
from tui.plausible import LATEST_NS, is_plausible
from tui.report import report_lines
from tui.session.store import Session
from tui.verdict.engine import Engine

REQUESTS = some.one_of([anything(kind) for kind in wire.Request.__args__])
REPLIES = some.one_of([anything(kind) for kind in wire.Reply.__args__])


def in_order(seen: Delivered) -> Delivered:
    """The same with times that pass the door: what lies behind it is to be reached."""
    batch = seen.batch

    def tidied(row: Any, *pairs: tuple[str, str]) -> Any:
        times: dict[str, int] = {}
        for first, last in pairs:
            low, high = sorted(abs(getattr(row, name)) % LATEST_NS for name in (first, last))
            times |= {first: low, last: high}
        return replace(row, **times)

    steps_in_order = [tidied(row, ("start_ns", "end_ns")) for row in batch.steps]
    gpu = [
        tidied(row, ("start_ns", "end_ns"), ("gpu_start_ns", "gpu_end_ns"))
        for row in batch.gpu_steps
    ]
    opened = tidied(batch.open, ("started_ns", "since_ns"))
    sent_ns = abs(batch.sent_ns) % LATEST_NS
    return replace(
        seen,
        batch=replace(batch, steps=steps_in_order, gpu_steps=gpu, open=opened, sent_ns=sent_ns),
    )


DELIVERED = anything(Delivered).map(in_order).filter(lambda seen: is_plausible(seen.batch))
SAID = some.one_of(DELIVERED, *(anything(kind) for kind in (Greeted, PageSeen, DumpSeen))).map(
    lambda seen: replace(seen, t_ns=abs(seen.t_ns) % LATEST_NS)  # by our own clock
)
HOSTILE = some.lists(SAID, max_size=6)
"""What a session is told of what another process says. The rest is measured by us."""

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)


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


@given(REQUESTS)
def test_a_request_is_read_back(request: Any) -> None:
    assert wire.decode_request(wire.encode_message(request)) == request


@SLOW
@given(seen=HOSTILE, t_ns=some.integers(0, 2**62))
def test_a_session_survives_what_no_probe_would_say(seen: list[Any], t_ns: int) -> None:
    session = Session(1, "train.py", 0, Engine())
    session.ingest(Greeted(t_ns=0, hello=HELLO))
    session.ingest(delivered(steps(30, forward_ms=1, data_ms=9), t_ms=300))
    for one in seen:
        session.ingest(one)
    for now_ns in (S, t_ns):
        snapshot = session.snapshot(now_ns, 1.8e9)
        report_lines(snapshot, 80)
        line(snapshot, True)
        PlainView(80).lines(snapshot)
        PlainView(80).closing(snapshot)
