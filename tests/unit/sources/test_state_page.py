"""State pages: what we write is what we read, and whatever else stands there harms nobody."""

import json
import os
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.probe.wire.marks import MARK_BYTES, RING
from gpuwatch.tui.discovery.state_page import hello_of
from gpuwatch.tui.messages import SCHEMA
from gpuwatch.tui.sources.marks.reader import columns_of
from tests.unit.sources.own_pages import opened_at


def test_a_page_is_found_and_read_back() -> None:
    identity = Identity("ipc:///tmp/x", None)
    written = StatePage(identity.as_json(page.HELLO_BYTES))
    written.words[page.WORD_OPEN] = page.pack_open(6, 123_456_789)
    times_ns = range(1, RING + 4)
    for first, end in ((0, 3), (3, RING), (RING, RING + 3)):
        written.put(first, array("q", times_ns[first:end]), array("q", range(first, end)))
    written.words[page.WORD_MARKS] = RING + 3
    written.words[page.WORD_STEPS] = 17
    found = opened_at("ipc:///tmp/x")
    assert found.hello.schema == SCHEMA
    assert {name: getattr(found.hello, name) for name in vars(identity)} == vars(identity)
    words = found.words()
    assert (words.open_kind, words.open_since_ns) == (6, 123_456_789)
    assert (words.steps, words.marks) == (17, RING + 3)
    first, body = found.marks(0)
    assert first == RING + 3 - RING // 2
    assert columns_of(body)[0].tolist() == [*times_ns[first:]]
    first, body = found.marks(RING - 1)
    assert (first, columns_of(body)[1].tolist()) == (RING - 1, [*range(RING - 1, RING + 3)])
    assert found.marks(RING + 3) == (RING + 3, b"")
    assert columns_of(b"".join(written.marks(3, RING + 3)))[1].tolist() == [*range(3, RING + 3)]
    written.close(page.STATE_ENDED)
    assert found.words().state == page.STATE_ENDED  # still readable: the descriptor holds it
    found.close()


def test_a_long_command_line_is_cut_to_fit() -> None:
    identity = Identity(None, None)
    identity.argv[:] = ["x" * 100] * 1000
    encoded = identity.as_json(page.HELLO_BYTES)
    assert len(encoded) <= page.HELLO_BYTES
    assert json.loads(encoded)["pid"] == os.getpid()


@given(st.binary(max_size=page.RING_OFFSET + 999))
def test_any_bytes_are_refused_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says, it is a ValueError
        hello_of(raw)


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_any_hello_behind_a_good_header_is_refused(hello: bytes, length: int) -> None:
    raw = bytearray(page.RING_OFFSET)
    raw[page.HEADER_OFFSET : page.HEADER_OFFSET + page.HEADER.size] = page.HEADER.pack(
        page.MAGIC, page.LAYOUT_VERSION, length, RING, MARK_BYTES
    )
    raw[page.HELLO_OFFSET : page.HELLO_OFFSET + len(hello)] = hello
    with pytest.raises(ValueError):  # noqa: PT011 - as above
        hello_of(bytes(raw))


@given(
    up_ns=st.integers(1, 2**60),
    age_ns=st.integers(-10_000_000, 300 * 86_400 * 10**9),
    kind=st.integers(1, 24),
)
def test_the_last_mark_has_a_time_however_long_the_machine_is_up(
    up_ns: int, age_ns: int, kind: int
) -> None:
    """56 bits of nanoseconds are 834 days."""
    since_ns = max(1, up_ns - age_ns)
    word = page.pack_open(kind, since_ns)
    assert word.bit_length() <= 64
    assert page.unpack_open(word, up_ns) == (kind, since_ns)
    assert page.unpack_open(page.pack_open(0, 0), up_ns) == (0, 0)


def test_a_page_takes_the_time_of_a_machine_that_is_up_for_years() -> None:
    own = StatePage(Identity(None, None).as_json(page.HELLO_BYTES))
    since_ns = 3 * 365 * 86_400 * 10**9
    own.words[page.WORD_OPEN] = page.pack_open(2, since_ns)
    assert page.unpack_open(own.words[page.WORD_OPEN], since_ns + 10) == (2, since_ns)
    own.close(page.STATE_ENDED)
