"""Everything that reads bytes somebody else wrote, as one function of those bytes each.

Each of them ends with what it read or with the error that its callers expect; anything else that
comes out is a defect, and so is an answer that takes long or holds much.
"""

import contextlib
import os
import struct
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpuwatch.probe.encoding import decode_request
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.tui import messages as wire
from gpuwatch.tui import requests
from gpuwatch.tui.discovery.state_page import hello_of
from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.messages import Dump, ThreadStack
from gpuwatch.tui.model.observations import Delivered
from gpuwatch.tui.model.plausible import is_plausible
from gpuwatch.tui.recording.format import CHECK, FRAME, PREFIX, frame
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.sources.marks.reader import ReplyReader
from gpuwatch.tui.steps import Batch
from gpuwatch.tui.verdict.engine import Engine
from tests.processes.monitored import ROOT
from tests.unit.session.making import HELLO, judged, loader

KINDS: Final = (2, 3, 6, 7, 8, 9) * 4
"""Kinds of the marks of a plain loop."""
RECORDINGS: Final = ("item_each_step", "gpt_bf16")


def a_reply(data: bytes) -> None:
    """What a probe sends, as far as the picture on the screen."""
    with contextlib.suppress(ValueError):
        reply = ReplyReader().read(data)
        if isinstance(reply, Batch) and is_plausible(reply):
            session = Session(1, "train.py", 0, Engine())
            session.ingest(Delivered(t_ns=reply.sent_ns, batch=reply, lost=0))
            judged(session, reply.sent_ns, 1.8e9)


def a_request(data: bytes) -> None:
    """What a monitor asks."""
    with contextlib.suppress(ValueError):
        decode_request(data)


def a_page(data: bytes) -> None:
    """The state page."""
    with contextlib.suppress(ValueError):
        hello_of(data)


def a_recording(data: bytes) -> None:
    """A file, with its checksums made right so that what lies behind them is reached."""
    fd = os.memfd_create("recording")
    try:
        os.write(fd, mended(data))
        with contextlib.suppress(GpuwatchError):
            recording = Recording(Path(f"/proc/self/fd/{fd}"))
            try:
                for _ in recording.entries():
                    pass
            finally:
                recording.close()
    finally:
        os.close(fd)


def mended(data: bytes) -> bytes:
    """A recording with the checksums that its bytes now have."""
    if len(data) < PREFIX.size:
        return data
    magic, version, length = PREFIX.unpack_from(data)
    header = data[PREFIX.size : PREFIX.size + length]
    out = PREFIX.pack(magic, version, length) + header + CHECK.pack(zlib.crc32(header))
    at = len(out)
    while at + FRAME.size <= len(data):
        length, _, until_ns = FRAME.unpack_from(data, at)
        at += FRAME.size
        with contextlib.suppress(struct.error):
            out += frame(data[at : at + length], until_ns)
        at += length
    return out


SURFACES: Final[dict[str, Callable[[bytes], None]]] = {
    "reply": a_reply,
    "request": a_request,
    "page": a_page,
    "recording": a_recording,
}


def seeds_of(surface: str) -> list[bytes]:
    """Real ones."""
    if surface == "reply":
        dump = Dump(1, [ThreadStack("MainThread", True, [("f", "t.py", 3)], False)], 0)
        times_ns = range(9, 9 * len(KINDS) + 9, 9)
        slots = array("q", [*times_ns, *[-kind for kind in KINDS]]).tobytes()
        sent = wire.Marks(
            1,
            9,
            len(KINDS),
            1,
            ["a"],
            [(1, loader(num_workers=4), True, 5)],
            [],
            None,
            None,
            None,
            None,
            Settings(threads=4, optimizer="AdamW"),
            0,
            [],
            [],
            [],
            [],
            None,
            0,
        )
        output = (wire.Greeting(HELLO, 5), wire.Bye("exiting", 3), dump)
        plain = [wire.encode_message(one) for one in output]
        return [*plain, wire.encode_message(sent) + b"\n" + slots]
    if surface == "request":
        asked = (requests.Subscribe(wire.SCHEMA, 1, True), requests.Leave(1), requests.AskStacks())
        return [wire.encode_message(one) for one in asked]
    if surface == "page":
        made = StatePage(Identity("ipc:///tmp/x", None).as_json(page.HELLO_BYTES))
        return [bytes(made._map)[: page.RING_OFFSET]]
    folder = ROOT / "demo" / "recordings"
    return [(folder / f"{name}.gpuwatch").read_bytes() for name in RECORDINGS]
