"""The file: all of it comes back, little of it is needed, and no bytes do harm."""

import io
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.model.observations import AnyObservation, Delivered, DumpSeen, StackCount
from gpuwatch.tui.recording.chunks import ChunkReader, ChunkWriter
from gpuwatch.tui.recording.columns import MOST_VALUES
from gpuwatch.tui.recording.format import (
    FLUSHED,
    MOST_CHUNK_BYTES,
    Entry,
    Looked,
    MalformedError,
    frame,
)
from gpuwatch.tui.recording.reader import CRASHED, DAMAGED, Recording
from gpuwatch.tui.recording.recorder import RecordingWriter
from gpuwatch.tui.recording.tape import kept
from tests.unit.recording.a_run import START, a_run
from tests.unit.recording.files import HEADER, opened, read, recorded
from tests.unit.session.making import S, delivered, steps

MOST_KB_A_MINUTE = 120


def entries_of(seconds: float) -> list[Entry]:
    """A run as a recording has it, with a look a second."""
    seen: list[AnyObservation] = [kept(one) for one in a_run(seconds)]
    looks: list[Entry] = [Looked(t_ns=START + at * S + 123_457) for at in range(int(seconds))]
    return sorted([*seen, *looks], key=lambda entry: entry.t_ns)


def test_a_minute_is_small_and_comes_back_whole(tmp_path: Path) -> None:
    entries = entries_of(60)
    data = recorded(entries)
    assert len(data) < MOST_KB_A_MINUTE * 1_000
    assert read(tmp_path, data) == (entries, None)


def test_what_the_probe_itself_saw_comes_back(tmp_path: Path) -> None:
    frames = ("main (train.py:3)", "wait (threading.py:359)")
    stack = StackCount(role="main", pid=1, thread="MainThread", frames=frames, count=1, line="x()")
    dumps: list[Entry] = [
        kept(DumpSeen(t_ns=at_ns, taken_ns=at_ns - 7_123, stacks=(stack,), left_out=2))
        for at_ns in (START, START + S, START + 9 * S)
    ]
    assert read(tmp_path, recorded(dumps)) == (dumps, None)


def test_the_length_is_known_without_unpacking(tmp_path: Path) -> None:
    entries = entries_of(5)
    recording = opened(tmp_path, recorded(entries))
    assert (recording.header, recording.ends_early) == (HEADER, None)
    assert recording.until_ns == max(entry.t_ns for entry in entries)
    recording.close()


def test_what_was_not_rounded_comes_back_as_well(tmp_path: Path) -> None:
    entries: list[Entry] = list(a_run(2))
    assert read(tmp_path, recorded(entries))[0] == entries


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=some.floats(0, 1))
def test_a_file_that_ends_anywhere_is_readable_until_there(tmp_path: Path, cut: float) -> None:
    entries = entries_of(3)
    data = recorded(entries)
    first = len(recorded([])) - struct.calcsize("<IIq")
    data = data[: first + int(cut * (len(data) - first - 1))]
    seen, early = read(tmp_path, data)
    assert seen == entries[: len(seen)]
    assert early == CRASHED
    lost_s = (entries[-1].t_ns - (seen[-1].t_ns if seen else START)) / S
    assert lost_s < 3 * (1 - cut) + 1.5


def test_a_recorder_that_was_killed_loses_only_the_mark(tmp_path: Path) -> None:
    entries = entries_of(3)
    assert read(tmp_path, recorded(entries, ended=False)) == (entries, CRASHED)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=some.lists(some.tuples(some.floats(0, 1), some.integers(0, 255)), min_size=1))
def test_changed_bytes_are_an_error_or_an_early_end(
    tmp_path: Path, changes: list[tuple[float, int]]
) -> None:
    entries = entries_of(2)
    data = bytearray(recorded(entries))
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    try:
        seen, early = read(tmp_path, bytes(data))
    except GpuwatchError:
        return
    assert seen == entries[: len(seen)]
    assert early in (CRASHED, DAMAGED) or len(seen) == len(entries)


@settings(max_examples=150, deadline=None)
@given(changes=some.lists(some.tuples(some.floats(0, 1), some.integers(0, 255)), min_size=1))
def test_a_chunk_that_was_made_up_is_malformed_at_worst(changes: list[tuple[float, int]]) -> None:
    data = bytearray(ChunkWriter().pack(entries_of(0.5)))
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    try:
        seen = ChunkReader().unpack(bytes(data))
    except MalformedError:
        return
    assert len(seen) <= MOST_VALUES


@pytest.mark.parametrize(
    "chunk",
    [
        ([-1], {"looked": [[1, 5]]}),  # a place before the first
        ([0, -1], {"looked": [[1, 5]]}),
        ([0], {"looked": [[None, 5]]}),  # no unit
    ],
)
def test_what_a_checksum_does_not_show_is_damage(tmp_path: Path, chunk: Any) -> None:
    data = msgspec.msgpack.encode(chunk)
    with pytest.raises(MalformedError):
        ChunkReader().unpack(data)
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
    made = recorded([], ended=False) + frame(packed.removesuffix(FLUSHED), START)
    assert read(tmp_path, made) == ([], DAMAGED)


@pytest.mark.parametrize("started", [1e20, 1e300, -1e300, float("nan"), float("inf")])
def test_a_date_that_no_calendar_has_makes_no_sense(tmp_path: Path, started: float) -> None:
    file = io.BytesIO()
    RecordingWriter(file, msgspec.structs.replace(HEADER, started_unix=started))
    with pytest.raises(GpuwatchError, match="is not a recording"):
        opened(tmp_path, file.getvalue())


@given(data=some.binary(max_size=200))
def test_any_bytes_at_all_are_malformed_at_worst(data: bytes) -> None:
    try:
        ChunkReader().unpack(data)
    except MalformedError:
        pass


def held_by(data: bytes) -> int:
    """Most bytes that reading a chunk took."""
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError):
            ChunkReader().unpack(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("filler", [b"\x90", b"\x80", b"\xa0", b"\xc0", b"\x00", b"\x91\x00"])
@pytest.mark.parametrize("where", ["order", "columns", "column", "lengths"])
def test_a_chunk_that_decodes_to_much_takes_no_memory(filler: bytes, where: str) -> None:
    count = MOST_CHUNK_BYTES // len(filler) - 100
    much = b"\xdd" + count.to_bytes(4, "big") + filler * count
    encode = msgspec.msgpack.encode
    data = {
        "order": b"\x92" + much + b"\x80",
        "columns": b"\x92\x91\x00\x81" + encode("link") + much,
        "column": b"\x92\x91\x00\x81" + encode("link") + b"\x92\xc0" + much,
        "lengths": b"\x92\x91\x00\x81" + encode("gpus") + b"\x92\xc0\x91" + much,
    }[where]
    assert held_by(data) < 20_000_000


def test_small_bytes_that_show_many_rows_take_little() -> None:
    rows = msgspec.msgpack.encode(([0], {"gpus": [[1, 1], [[1, 10**12]]]}))
    assert held_by(rows) < 1_000_000
    order = msgspec.msgpack.encode(([0] * MOST_VALUES, {"processes": []}))
    assert held_by(order) < 50_000_000


def test_a_frame_that_inflates_to_too_much_is_damage(tmp_path: Path) -> None:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    bomb = stream.compress(b"\x00" * 10 * MOST_CHUNK_BYTES) + stream.flush(zlib.Z_SYNC_FLUSH)
    data = recorded([], ended=False) + frame(bomb.removesuffix(FLUSHED), START)
    assert len(data) < 100_000
    tracemalloc.start()
    assert read(tmp_path, data) == ([], DAMAGED)
    assert tracemalloc.get_traced_memory()[1] < 5 * MOST_CHUNK_BYTES
    tracemalloc.stop()


def test_what_no_reader_would_take_is_not_written() -> None:
    with pytest.raises(OverflowError):
        ChunkWriter().pack([delivered(steps(MOST_VALUES // 20, forward_ms=1))])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"GPUW", "first line"),
        (b"import torch\n", "does not begin"),
        (recorded([])[:40], "header"),
        (recorded([])[:60] + b"!!" + recorded([])[62:], "header"),
    ],
)
def test_what_is_no_recording_is_reported_in_three_lines(
    tmp_path: Path, data: bytes, why: str
) -> None:
    with pytest.raises(GpuwatchError) as caught:
        opened(tmp_path, data)
    assert len(str(caught.value).splitlines()) == 3
    assert why in caught.value.why
    assert caught.value.exit_code == 2


def test_an_older_recording_has_to_be_made_again(tmp_path: Path) -> None:
    data = bytearray(recorded([]))
    data[8] = 1
    with pytest.raises(GpuwatchError, match="older gpuwatch") as caught:
        opened(tmp_path, bytes(data))
    assert "the format has changed" in caught.value.why
    assert "gpuwatch record" in str(caught.value).splitlines()[2]


def test_a_newer_recording_asks_for_a_newer_gpuwatch(tmp_path: Path) -> None:
    data = bytearray(recorded([]))
    data[8] = 9
    with pytest.raises(GpuwatchError, match="newer gpuwatch") as caught:
        opened(tmp_path, bytes(data))
    assert "version 9" in caught.value.why


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(GpuwatchError, match="No such file"):
        Recording(tmp_path / "missing.gpuwatch")


def test_a_recording_of_this_version_stays_readable() -> None:
    recording = Recording(Path(__file__).parent / "golden" / "version_2.recording")
    entries = list(recording.entries())
    recording.close()
    assert (recording.header, recording.ends_early) == (HEADER, None)
    assert sum(isinstance(entry, Looked) for entry in entries) == 4
    batches = [entry.batch for entry in entries if isinstance(entry, Delivered)]
    step_numbers = [row.number for batch in batches for row in batch.steps]
    assert step_numbers == list(range(1, len(step_numbers) + 1))
    assert all(row.exposed_ns > 0 for batch in batches for row in batch.gpu_steps)
