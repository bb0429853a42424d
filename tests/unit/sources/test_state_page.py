"""State pages: what we write is what we read, and whatever else stands there harms nobody."""

import json
import os
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.probe.identity import identify
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.probe.wire.messages import SCHEMA, Step
from gpuwatch.tui.discovery.state_page import hello_of, pages_of, rows_of


def step(number: int) -> Step:
    return Step(
        number, 1, 10, 30, 1, 2, 3, 4, 5, 6, 7, 8, 9, {"a": 1}, 1, 1, 1, None, None, 1, False
    )


def test_a_page_is_found_and_read_back() -> None:
    identity = identify("ipc:///tmp/x", None)
    written = StatePage(identity.as_json(page.HELLO_BYTES))
    written.words[page.WORD_OPEN] = page.pack_open(6, 123_456_789)
    for number in range(1, page.RING_ROWS + 3):
        written.add_rows([step(number)])  # type: ignore[list-item]
    (found,) = [one for one in pages_of(os.getpid()) if one.hello.endpoint == "ipc:///tmp/x"]
    assert found.hello.schema == SCHEMA
    assert {name: getattr(found.hello, name) for name in asdict(identity)} == asdict(identity)
    words = found.words()
    assert (words.open_kind, words.open_since_ns) == (6, 123_456_789)
    assert words.steps == page.RING_ROWS + 2
    rows = found.rows()
    assert [rows[0].number, rows[-1].number] == [3, page.RING_ROWS + 2]
    assert (rows[0].data_ns, rows[0].named_ns) == (1 + 2, 7 + 8 + 9 + 1)
    written.close(page.STATE_ENDED)
    assert found.words().state == page.STATE_ENDED  # still readable: the descriptor holds it
    found.close()


def test_a_long_command_line_is_cut_to_fit() -> None:
    identity = identify(None, None)
    identity.argv[:] = ["x" * 100] * 1000
    encoded = identity.as_json(page.HELLO_BYTES)
    assert len(encoded) <= page.HELLO_BYTES
    assert json.loads(encoded)["pid"] == os.getpid()


@given(st.binary(max_size=page.SIZE))
def test_any_bytes_are_refused_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says, it is a ValueError
        hello_of(raw)
    rows_of(raw)


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_any_hello_behind_a_good_header_is_refused(hello: bytes, length: int) -> None:
    raw = bytearray(page.SIZE)
    raw[page.HEADER_OFFSET : page.HEADER_OFFSET + page.HEADER.size] = page.HEADER.pack(
        page.MAGIC, page.LAYOUT_VERSION, length, page.RING_ROWS, page.ROW.size
    )
    raw[page.HELLO_OFFSET : page.HELLO_OFFSET + len(hello)] = hello
    with pytest.raises(ValueError):  # noqa: PT011 - as above
        hello_of(bytes(raw))
