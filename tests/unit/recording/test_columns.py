"""Figures as bits and bytes: whatever goes in comes out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gpuwatch.tui.recording.bits import BitReader, BitWriter
from gpuwatch.tui.recording.columns import ColumnReader, ColumnWriter
from gpuwatch.tui.recording.format import MalformedError
from gpuwatch.tui.recording.kinds import Kind, float_of, kind_of_int, number_of_float
from gpuwatch.tui.recording.varints import Varints

INTS = some.integers(-(2**63), 2**64 - 1)
CHUNKS = some.lists(some.lists(some.integers(0, 2**66), max_size=30), max_size=4)


@given(CHUNKS)
def test_bits_come_back_chunk_by_chunk_and_zeros_follow(chunks: list[list[int]]) -> None:
    writer, reader = BitWriter(), BitReader()
    for chunk in chunks:
        for number in chunk:
            writer.put(number)
        reader.feed(writer.take())
        assert [reader.next() for _ in chunk] == chunk


def test_zeros_cost_nothing_and_noise_costs_what_it_is() -> None:
    writer = BitWriter()
    for _ in range(1_000):
        writer.put(0)
    assert writer.take() == b""
    for number in range(1_000):
        writer.put(number * 7_919 % 1_024)
    assert len(writer.take()) < 1_000 * 12 / 8, "ten bits each, and little more"


@given(some.lists(some.lists(some.none() | some.booleans() | INTS, max_size=30), max_size=4))
def test_a_column_comes_back_whatever_the_kinds(chunks: list[list[Any]]) -> None:
    writer, reader = ColumnWriter(), ColumnReader()
    for chunk in chunks:
        told = []
        for value in chunk:
            kind = Kind.NONE if value is None else Kind.BOOL
            if value is not None and not isinstance(value, bool):
                kind = kind_of_int(value, writer.kind)
            told.append((kind, int(value or 0)))
            writer.put(*told[-1])
        names, differences = writer.take()
        reader.feed(Varints(names), differences)
        again = []
        for _ in chunk:
            number = reader.next()
            again.append((reader.kind, number))
        assert again == told


@given(some.floats(), some.sampled_from([None, Kind.TENTHS, Kind.KIB_FLOAT]))
def test_a_float_is_the_very_same(value: float, now: Kind | None) -> None:
    again = float_of(*number_of_float(value, now))
    assert again == value or (again != again and value != value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(88.1, Kind.TENTHS), (8.0, Kind.TENTHS), (2048.0, Kind.KIB_FLOAT), (0.123, Kind.FLOAT)],
)
def test_floats_have_the_shortest_kind(value: float, kind: Kind) -> None:
    assert number_of_float(value, None)[0] is kind


def test_a_column_without_a_kind_is_malformed() -> None:
    with pytest.raises(MalformedError):
        ColumnReader().next()
