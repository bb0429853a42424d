"""Series: an hour in bounded room, and nothing of it lost on the way."""

import random

import pytest

from gpuwatch.tui.timeseries.series import Level, Series
from gpuwatch.tui.timeseries.writer import SLACK, Growing

MS = 1_000_000
S = 1_000_000_000


def growing(interval_ns: int = 100 * MS, as_sampled: int = 6_000) -> Growing:
    return Growing("sm", "SM active", "%", "gpm", 0, interval_ns, as_sampled)


def of(values: list[float], interval_ns: int = 100 * MS, as_sampled: int = 6_000) -> Series:
    writer = growing(interval_ns, as_sampled)
    for at, value in enumerate(values):
        writer.add((at + 1) * interval_ns, value)
    return writer.series()


def test_a_point_covers_the_time_before_it() -> None:
    series = of([0.0, 50.0, 100.0])
    sampled = series.levels[0]
    assert [point.t_ns for point in sampled] == [100 * MS, 200 * MS, 300 * MS]
    assert [point.mean for point in sampled] == [0.0, 50.0, 100.0]
    assert (series.start_ns, series.end_ns, series.interval_ns) == (0, 300 * MS, 100 * MS)
    reported = sampled.over(50 * MS, 250 * MS)
    assert reported is not None
    assert reported.mean == pytest.approx(50.0)  # half of the first, the second, half of the third
    assert reported.known_ns == 200 * MS


def test_every_level_has_mean_and_extremes() -> None:
    series = of([float(at % 10) for at in range(400)])
    assert [level.interval_ns for level in series.levels] == [100 * MS, S, 10 * S]
    for level in series.levels[1:]:
        assert {(point.mean, point.low, point.high) for point in level} == {(4.5, 0.0, 9.0)}
        assert all(point.t_ns % level.interval_ns == 0 for point in level)
    assert len(series.levels[1]) == 39, "the last second is not over before a sample behind it"


def test_what_is_sampled_every_second_is_not_rolled_up_by_the_second() -> None:
    assert [level.interval_ns for level in of([1.0], S).levels] == [S, 10 * S]


@pytest.mark.parametrize("at", [0, 7, 9_995, 20_003, 35_990])
def test_no_spike_is_lost_at_any_level_and_none_is_doubled(at: int) -> None:
    values = [5.0] * 36_000
    values[at] = 99.0
    series = of(values)
    for level in series.levels:
        if level.start_ns > at * 100 * MS:
            continue  # dropped as it was sampled, and held by the levels above
        for column_ns in (1_700 * MS, 36 * S):
            reported = [
                series.over(start, start + column_ns, level)
                for start in range(0, 3_600 * S, column_ns)
            ]
            assert [one.high for one in reported if one].count(99.0) == 1


def test_the_mean_is_by_time_at_every_level() -> None:
    # GIVEN samples of uneven length, some of them missing
    chance = random.Random(5)
    writer, t_ns = growing(), 0
    held: list[tuple[int, float, int]] = []
    for _ in range(9_000):
        t_ns += chance.randrange(60, 900 if chance.random() < 0.05 else 140) * MS
        length_ns = chance.randrange(50, 101) * MS
        value = chance.uniform(0, 100)
        length_ns = min(length_ns, t_ns - (held[-1][0] if held else 0))
        writer.add(t_ns, value, length_ns)
        held.append((t_ns, value, length_ns))
    series = writer.series()

    # WHEN a stretch of whole 10 s is asked for
    start_ns, end_ns = 400 * S, 800 * S
    inside = [one for one in held if start_ns <= one[0] - one[2] // 2 < end_ns]
    expected = sum(v * n for _, v, n in inside) / sum(n for _, _, n in inside)
    for level in series.levels:
        reported = series.over(start_ns, end_ns, level)
        assert reported is not None
        # THEN all levels agree, but for the samples that lie across its ends
        assert reported.mean == pytest.approx(expected, abs=0.05)
        assert reported.known_ns == pytest.approx(sum(n for _, _, n in inside), abs=0.2 * S)


def test_the_newest_part_comes_from_the_finer_levels() -> None:
    values = [10.0] * 95 + [90.0] * 5
    series = of(values)
    reported = series.over(0, 10 * S, series.levels[2])
    assert len(series.levels[2]) == 0
    assert reported is not None
    assert reported.mean == pytest.approx(14.0)
    assert reported.high == 90.0


def test_what_was_not_measured_is_no_zero() -> None:
    writer = growing()
    for at in (*range(10), *range(40, 50)):
        writer.add((at + 1) * 100 * MS, 80.0)
    for level in writer.series().levels:
        assert writer.series().over(1_500 * MS, 3_000 * MS, level) is None
    reported = writer.series().over(0, 5 * S, writer.series().levels[0])
    assert reported is not None
    assert reported.mean == pytest.approx(80.0)
    assert reported.known_ns == 2 * S


def test_a_sample_that_comes_late_leaves_no_hole_and_a_missing_one_does() -> None:
    writer = growing()
    for t_ms in (100, 240, 600):
        writer.add(t_ms * MS, 50.0)
    reported = writer.series().over(0, 600 * MS, writer.series().levels[0])
    assert reported is not None
    assert reported.known_ns == (100 + 140 + 100) * MS


def test_what_is_not_newer_is_not_taken() -> None:
    writer = growing()
    for t_ms in (200, 100, 200, 300):
        writer.add(t_ms * MS, float(t_ms))
    assert [point.mean for point in writer.series().levels[0]] == [200.0, 300.0]


def test_views_taken_earlier_do_not_change() -> None:
    writer = growing(as_sampled=50)
    taken = []
    for at in range(2_000):
        writer.add((at + 1) * 100 * MS, float(at))
        series = writer.series()
        if at % 97 == 0:
            taken.append((series, [list(level) for level in series.levels]))
    for series, were in taken:
        assert [list(level) for level in series.levels] == were


def test_room_is_bounded_at_an_hour() -> None:
    writer = growing(as_sampled=600)
    for at in range(60_000):
        writer.add((at + 1) * 100 * MS, 1.0)
    series = writer.series()
    assert [len(level) for level in series.levels] == [600, 3_600, 360]
    for level in series.levels:
        assert len(level._rows.ends) <= len(level) * SLACK + 1
    assert not series.levels[0].whole
    assert series.end_ns - series.start_ns == pytest.approx(3_600 * S, abs=20 * S)


def test_taking_a_picture_does_not_copy() -> None:
    writer = growing()
    for at in range(5_000):
        writer.add((at + 1) * 100 * MS, 1.0)
    once = writer.series()
    writer.add(5_001 * 100 * MS, 1.0)
    again = writer.series()
    assert again is not once
    assert again.levels[0]._rows is once.levels[0]._rows


def test_a_level_is_chosen_by_column_and_by_how_far_it_reaches() -> None:
    series = of([1.0] * 20_000)
    sampled, second, ten = series.levels
    assert series.level_for(100 * MS) is sampled
    assert series.level_for(18 * S) is second
    assert series.level_for(90 * S) is ten
    assert series.level_for(100 * MS, since_ns=1_990 * S) is sampled
    assert series.level_for(100 * MS, since_ns=100 * S) is second
    assert series.level_for(100 * MS, since_ns=-S) is second, "nothing was ever before it"
    assert of([1.0] * 100).level_for(100 * MS, since_ns=-S).interval_ns == 100 * MS


def test_a_level_is_a_sequence() -> None:
    level = of([float(at) for at in range(20)]).levels[0]
    assert level[-1].mean == 19.0
    assert level[0].mean == 0.0
    assert [point.mean for point in level[-3:]] == [17.0, 18.0, 19.0]
    assert isinstance(level[2:5], Level)
    assert len(level[5:2]) == 0
    assert level[3:6] == level[3:6]
    assert level[3:6] != level[3:7]
    with pytest.raises(IndexError):
        level[20]
