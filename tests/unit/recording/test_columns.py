"""Records as columns: whatever goes in comes out, and what stands still costs nothing."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gpuwatch.tui.recording.columns import MOST_VALUES, Table
from gpuwatch.tui.recording.format import MalformedError

WHOLE = some.integers(-(2**62), 2**62)
FLOAT = some.floats(allow_nan=False) | some.sampled_from([0.1, 88.1, 1e300, -0.3, 20480.0])


class Inner(msgspec.Struct, frozen=True, array_like=True):
    count: int
    share: float | None = None


class Record(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    t_ns: int
    known: int | None
    running: bool
    share: float
    name: str
    frames: tuple[str, ...]
    phases: dict[str, int]
    one: Inner
    perhaps: Inner | None
    several: tuple[Inner, ...]
    later: int | None = None
    moments: int = 0


class OlderRecord(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    t_ns: int
    known: int | None


INNER = some.builds(Inner, WHOLE, some.none() | FLOAT)
RECORDS = some.lists(
    some.builds(
        Record,
        t_ns=WHOLE,
        known=some.none() | WHOLE,
        running=some.booleans(),
        share=FLOAT,
        name=some.text(max_size=5),
        frames=some.lists(some.text(max_size=5), max_size=3).map(tuple),
        phases=some.dictionaries(some.text(max_size=3), WHOLE, max_size=2),
        one=INNER,
        perhaps=some.none() | INNER,
        several=some.lists(INNER, max_size=3).map(tuple),
        later=some.none() | some.integers(0, 3),
        moments=some.integers(0, 2**64 - 1),
    ),
    min_size=1,
    max_size=4,
)


def read(table: Table, packed: Any, count: int, kind: type = Record) -> list[Any]:
    columns = msgspec.msgpack.decode(msgspec.msgpack.encode(packed), type=list[msgspec.Raw])
    return [msgspec.convert(row, kind) for row in table.unpack(columns, count)]


@settings(max_examples=40, deadline=None)
@given(some.lists(RECORDS, max_size=3))
def test_records_come_back_chunk_by_chunk(chunks: list[list[Record]]) -> None:
    writer, reader = Table(Record), Table(Record)
    for records in chunks:
        assert read(reader, writer.pack(records), len(records)) == records


def record(t_ns: int, share: float = 0.1) -> Record:
    return Record(t_ns, 7, True, share, "python", ("f", "g"), {}, Inner(1), None, (Inner(2),))


def size(packed: Sequence[Any]) -> int:
    return len(msgspec.msgpack.encode(packed))


def test_what_stands_still_costs_nothing_and_a_difference_little() -> None:
    table = Table(Record)
    table.pack([record(7_000_000_000_000)])
    assert table.pack([record(7_000_000_000_000)] * 1_000) == []
    assert size(table.pack([record(7_000_000_001_000 + 1_000 * at) for at in range(100)])) < 110
    assert size(table.pack([record(7_000_000_100_000, 50 + at / 10) for at in range(100)])) < 320


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e17, 0.123, -0.5])
def test_a_float_is_the_very_same(value: float) -> None:
    (again,) = read(Table(Record), Table(Record).pack([record(1, value)]), 1)
    assert again.share == value


def test_fields_may_be_appended() -> None:
    newer = [record(1), record(5)]
    older = read(Table(OlderRecord), Table(Record).pack(newer), 2, OlderRecord)
    assert older == [OlderRecord(1, 7), OlderRecord(5, 7)]


@pytest.mark.parametrize(
    "packed",
    [
        [[1, 2, 3]],  # one value too many
        [[]],
        [[None, 1]],  # no unit
        [[1, "x"]],
        [[2**40, 2**40], "x"],
        [[1, 1], None, None, None, ["x"], None, None, [[1, -1]]],
        [[1, 1], None, None, None, ["x"], None, None, [[1, MOST_VALUES]]],
    ],
)
def test_columns_that_were_made_up_are_refused(packed: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read(Table(Record), packed, 1)


def test_a_value_that_is_repeated_is_bounded() -> None:
    table = Table(Record)
    big = record(1)
    big = msgspec.structs.replace(big, frames=tuple(map(str, range(1_000))))
    read(table, Table(Record).pack([big]), 1)
    with pytest.raises(MalformedError):
        read(table, [], MOST_VALUES // 20)
    with pytest.raises(MalformedError):
        read(table, [], MOST_VALUES)
