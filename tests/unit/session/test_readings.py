"""Readings of an hour in less than a quarter of the places."""

import pytest

from gpuwatch.tui.model.observations import Activity, ActivitySeen
from gpuwatch.tui.session.gpu import HELD, MERGED_OF, SINGLE, Readings, means

MS = 1_000_000


def reading(at: int, *busy: float) -> ActivitySeen:
    """The `at`-th of a run with ten a second."""
    gpus = tuple(
        Activity(index=index, source="gpm", interval_ns=100 * MS, busy=percent, sm=None)
        for index, percent in enumerate(busy)
    )
    return ActivitySeen(t_ns=at * 100 * MS, gpus=gpus)


def held(count: int) -> Readings:
    """The first so many: each shows its own number, and a second GPU the double."""
    readings = Readings()
    for at in range(count):
        readings.add(reading(at, float(at), 2.0 * at))
    return readings


def test_the_newest_are_as_they_came() -> None:
    count = SINGLE + 500
    readings = held(count)
    assert [seen.gpus[0].busy for seen in readings.last(3)] == [count - 3, count - 2, count - 1]
    since_ns = readings.last(SINGLE)[0].t_ns
    newest_first = list(readings.after(since_ns))
    assert len(newest_first) == SINGLE - 1
    assert newest_first[0] == readings.last(1)[0]


def test_a_mean_over_a_long_time_is_what_it_would_be_of_the_single_ones() -> None:
    count = SINGLE + 1_000
    readings = held(count)
    assert len(readings) < count - 800
    first, second = means(list(readings.after(-1)))
    assert first.busy == pytest.approx((count - 1) / 2)
    assert second.busy == pytest.approx(count - 1)
    assert first.interval_ns == count * 100 * MS


def test_what_one_source_does_not_show_is_not_made_up() -> None:
    readings = held(SINGLE + 10 * MERGED_OF)
    assert {gpu.sm for seen in readings.after(-1) for gpu in seen.gpus} == {None}


def test_it_holds_an_hour_and_no_more() -> None:
    readings = held(HELD + 4_000)
    oldest = list(readings.after(-1))[-1]
    kept_s = (readings.last(1)[0].t_ns - oldest.t_ns) / 1e9
    assert 3_590 < kept_s < 3_602
    assert len(readings) < HELD / 3.9
