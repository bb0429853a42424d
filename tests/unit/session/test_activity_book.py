"""What the GPUs did, as a session holds it."""

import pytest

from tests.unit.session.test_session import gpu
from tui.observations import Activity, ActivitySeen, GpusSeen
from tui.session.activity_book import LATE_NS, ActivityBook

MS = 1_000_000


def reading(at_ms: int, *sms: float, tensor: float | None = 10.0) -> ActivitySeen:
    """One of so many GPUs."""
    gpus = tuple(
        Activity(index=index, source="gpm", interval_ns=100 * MS, busy=95.0, sm=sm, tensor=tensor)
        for index, sm in enumerate(sms)
    )
    return ActivitySeen(t_ns=at_ms * MS, gpus=gpus)


def test_the_picture_shows_the_multiprocessors_of_all_gpus() -> None:
    book = ActivityBook()
    for at in range(30):
        book.seen(reading(100 * at, 30.0, 50.0))
    saw = book.sawtooth((0, 250 * MS))
    assert saw is not None
    assert (saw.title, saw.source, saw.interval_ns) == ("SM active %", "gpm 100 ms", 100 * MS)
    assert {sample.value for sample in saw.samples} == {40.0}
    assert len(saw.tensor) == 30


def test_without_the_counters_it_shows_utilization() -> None:
    book = ActivityBook()
    for at in range(5):
        row = Activity(index=0, source="utilization", interval_ns=200 * MS, busy=40.0)
        book.seen(ActivitySeen(t_ns=200 * at * MS, gpus=(row,)))
    saw = book.sawtooth(())
    assert saw is not None
    assert (saw.title, saw.source, saw.tensor) == ("GPU busy %", "nvml 200 ms", ())


def test_the_newest_second_in_one_number() -> None:
    book = ActivityBook()
    assert book.newest() == ()
    for at in range(30):
        book.seen(reading(100 * at, 10.0 if at < 20 else 30.0, 50.0))
    first, second = book.newest()
    assert (first.index, first.sm, first.tensor, first.fp32) == (0, 30.0, 10.0, None)
    assert (second.index, second.sm, second.interval_ns) == (1, 50.0, 1_000 * MS)


def test_readings_to_fold_are_gpms_alone() -> None:
    book = ActivityBook()
    row = Activity(index=0, source="utilization", interval_ns=200 * MS, busy=40.0)
    book.seen(ActivitySeen(t_ns=200 * MS, gpus=(row,)))
    book.seen(reading(300, 20.0, 40.0))
    late_ns = LATE_NS["gpm"]
    assert book.readings() == [(200 * MS - late_ns, 300 * MS - late_ns, 30.0)]


def test_means_over_the_time_of_the_window() -> None:
    book = ActivityBook()
    for at in range(40):
        book.seen(reading(100 * at, 20.0 if at < 20 else 80.0, tensor=None))
    told = book.between(1_950 * MS, 3_900 * MS)
    assert told is not None
    assert (told.sm, told.tensor, told.source) == (80.0, None, "gpm")
    assert told.seconds == pytest.approx(2.0, abs=0.1)
    assert book.between(10_000 * MS, 11_000 * MS) is None


def test_a_power_cap_is_no_throttling() -> None:
    book = ActivityBook()
    book.seen(reading(1_000, 50.0))
    for at, reasons in enumerate([("power cap",), ("power cap", "too hot"), (), ("too hot",)]):
        book.used(GpusSeen(t_ns=(500 + at) * MS, gpus=(gpu(50.0, reasons),)))
    told = book.between(0, 2_000 * MS)
    assert told is not None
    assert told.throttled == 0.5
