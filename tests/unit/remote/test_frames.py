"""Frames of a link: whole ones come through however they are cut, and nothing else does."""

import random
import zlib

import pytest

from gpuwatch.tui.recording.format import Entry
from gpuwatch.tui.recording.tape import kept
from gpuwatch.tui.remote import frames
from gpuwatch.tui.remote.coding import HEAD, EntryDecoder, EntryEncoder
from gpuwatch.tui.remote.frames import (
    Fault,
    Frame,
    FrameReader,
    Kind,
    LinkError,
    LinkHello,
    check_versions,
    clean,
    decoded,
    frame,
    message,
)
from tests.unit.recording.a_run import START, a_run

HELLO = LinkHello(protocol=1, oldest=1, coding=frames.CODING, gpuwatch="1", python="3", host="n")


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_frames_come_through_in_pieces(size: int) -> None:
    data = frame(Kind.OVER) + message(Kind.HELLO, HELLO) + frame(Kind.ENTRIES, bytes(500))
    reader, found = FrameReader(), list[Frame]()
    for at in range(0, len(data), size):
        found += reader.feed(data[at : at + size])
    assert [one.kind for one in found] == [Kind.OVER, Kind.HELLO, Kind.ENTRIES]
    assert decoded(found[1].body, LinkHello) == HELLO
    assert reader.take_rest() == b""


def test_a_frame_that_is_too_long_ends_the_link_before_it_is_held() -> None:
    reader = FrameReader()
    with pytest.raises(LinkError, match="4,294,967,295 bytes"):
        reader.feed(frames.HEAD.pack(Kind.ENTRIES, 0xFFFFFFFF, 0))


def test_a_frame_that_has_changed_ends_the_link() -> None:
    data = bytearray(message(Kind.HELLO, HELLO))
    data[-2] ^= 1
    with pytest.raises(LinkError, match="changed"):
        FrameReader().feed(bytes(data))


def test_a_body_that_makes_no_sense_ends_the_link() -> None:
    for body in (b"", b"{}", b"[" * 10_000, b'{"what": 3}', b"\xff"):
        with pytest.raises(LinkError):
            decoded(body, Fault)


def test_versions_that_do_not_match_are_refused() -> None:
    check_versions(HELLO)
    newer = LinkHello(protocol=9, oldest=1, coding=frames.CODING, gpuwatch="9", python="3", host="")
    check_versions(newer)
    future = LinkHello(protocol=9, oldest=8, coding=frames.CODING, gpuwatch="9", python="", host="")
    with pytest.raises(LinkError, match="protocol 9"):
        check_versions(future)
    other = LinkHello(protocol=1, oldest=1, coding=99, gpuwatch="9", python="", host="")
    with pytest.raises(LinkError, match="coding 99"):
        check_versions(other)


def test_texts_from_there_command_no_terminal() -> None:
    assert clean("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"
    assert len(clean("x" * 100_000)) <= frames.MOST_TEXT


def entries() -> list[Entry]:
    """Six seconds."""
    return [kept(one) for one in a_run(6.0)]


def test_entries_come_through_as_they_were() -> None:
    encoder, decoder, found = EntryEncoder(), EntryDecoder(), list[Entry]()
    given = entries()
    for at in range(0, len(given), 20):
        part = decoder.decode(encoder.encode(given[at : at + 20], at + 20, START + at, 3))
        assert (part.last, part.now_ns, part.left_out) == (at + 20, START + at, 3)
        found += part.entries
    assert found == given


def test_a_new_coding_begins_anew() -> None:
    decoder, given = EntryDecoder(), entries()[:40]
    for _ in range(2):
        encoder = EntryEncoder()
        assert decoder.decode(encoder.encode(given, 40, START, 0)).entries == given


def test_entries_without_any_still_show_the_time() -> None:
    part = EntryDecoder().decode(EntryEncoder().encode([], 7, START, 0))
    assert (part.entries, part.last, part.now_ns) == ([], 7, START)


def test_bytes_that_are_no_entries_end_the_link() -> None:
    body = EntryEncoder().encode(entries()[:40], 40, START, 0)
    rng = random.Random(1)
    refused = 0
    for _ in range(300):
        changed = bytearray(body)
        changed[rng.randrange(HEAD.size, len(changed))] ^= 1 << rng.randrange(8)
        try:
            EntryDecoder().decode(bytes(changed))
        except LinkError:
            refused += 1
    assert refused > 100  # others changed a figure: the frame's sum finds those


def test_a_frame_that_inflates_to_too_much_ends_the_link() -> None:
    bomb = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    data = bomb.compress(bytes(100_000_000)) + bomb.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(LinkError, match="too much"):
        EntryDecoder().decode(HEAD.pack(1, 1, START, 0) + data)
