"""The sawtooth without a GPU: steps laid out over moments."""

from collections.abc import Iterable

import pytest

from gpuwatch.tui.session.cpu_activity import Computing, OnCpu, PhaseSpan, grain_for, spans_of
from gpuwatch.tui.timeseries.series import Series
from tests.unit.session.making import (
    MS,
    S,
    delivered,
    picture,
    process,
    processes,
    session,
    step,
    steps,
)

ENDS = range(20, 1_000, 20)


def moments(series: Series) -> dict[int, int]:
    """What each moment of 20 ms is drawn as, by its end in ms."""
    reported = {end: series.over((end - 20) * MS, end * MS, series.levels[0]) for end in ENDS}
    return {
        end: round(one.mean) for end, one in reported.items() if one and one.known_ns >= 10 * MS
    }


def values(computing: Computing, open_spans: tuple[PhaseSpan, ...] = ()) -> list[int]:
    return list(moments(computing.series(open_spans)).values())


def laid_out(grain_ms: int, *made: object) -> Computing:
    computing = Computing(grain_ms * MS)
    for one in made:
        computing.add(spans_of(one))  # type: ignore[arg-type]
    return computing


def test_a_step_waits_first_and_then_computes() -> None:
    # ░░░░░░██████ 60 ms of data, 60 ms of work, in moments of 20 ms
    one = step(1, 0, data_ms=60, forward_ms=20, backward_ms=30, optimizer_ms=5, other_ms=5)
    assert values(laid_out(20, one, step(2, 120, forward_ms=20))) == [0, 0, 0, 100, 100, 100, 100]


def test_each_fetch_of_an_accumulating_step_is_a_tooth() -> None:
    one = step(1, 0, data_ms=40, forward_ms=40, fetches=2)
    assert values(laid_out(20, one, step(2, 80, forward_ms=20))) == [0, 100, 0, 100, 100]


def test_a_moment_holds_what_share_of_it_was_work() -> None:
    made = steps(6, data_ms=5, forward_ms=15)
    assert values(laid_out(20, *made)) == [75] * 6


def test_moments_that_nobody_knows_are_left_out() -> None:
    # Steps were lost between 40 and 200 ms: no zero is drawn there.
    computing = laid_out(20, step(1, 0, forward_ms=40), step(9, 200, forward_ms=40))
    computing.add([(240 * MS, 241 * MS, True)])
    assert list(moments(computing.series())) == [20, 40, 220, 240]


def test_start_up_of_workers_is_a_wait() -> None:
    assert values(laid_out(20, step(1, 0, startup_ms=40, forward_ms=21)))[:2] == [0, 0]


def test_the_open_step_is_drawn_and_not_kept() -> None:
    computing = laid_out(20, step(1, 0, forward_ms=40))
    open_spans = ((40 * MS, 100 * MS, False), (100 * MS, 120 * MS, True))
    assert values(computing, open_spans) == [100, 100, 0, 0, 0, 100]
    assert values(computing) == [100, 100]
    computing.add(spans_of(step(2, 40, forward_ms=61)))
    assert values(computing) == [100, 100, 100, 100, 100]


def test_a_hang_of_a_day_costs_no_more_than_the_picture() -> None:
    computing = Computing(20 * MS)
    computing.add([(0, 86_400_000 * MS, False)])
    series = computing.series()
    assert len(series.levels[0]) <= 7_200
    assert series.end_ns == 86_400_000 * MS
    reported = series.over(86_000_000 * MS, 86_400_000 * MS, series.levels[0])
    assert reported is not None
    assert (reported.mean, reported.known_ns) == (0.0, 400_000 * MS)


@pytest.mark.parametrize(("step_ms", "grain_ms"), [(5, 20), (1000, 20), (2500, 50), (60_000, 500)])
def test_the_grain_follows_the_steps(step_ms: int, grain_ms: int) -> None:
    assert grain_for(step_ms * MS) == grain_ms * MS


def looks(*percents: float | None) -> OnCpu:
    """A look a second from second 1 on."""
    reported = OnCpu()
    for second, percent in enumerate(percents, 1):
        reported.seen(processes(1_000 * second, process(1, cpu_percent=percent)))
    return reported


def in_seconds(spans: Iterable[PhaseSpan]) -> list[tuple[float, float, float]]:
    return [(start_ns / S, end_ns / S, share) for start_ns, end_ns, share in spans]


def test_a_process_that_sleeps_in_a_call_does_not_compute() -> None:
    # Seconds 1 to 2 saw the last of the steps, 2 to 5 the sleep.
    reported = looks(None, 70.0, 0.0, 0.2, 0.0, 90.0)
    work = ((1_500 * MS, 5_500 * MS, 1.0),)
    assert in_seconds(reported.corrected(work)) == [(1.5, 5.5, 0.0)]


def test_work_is_what_the_kernel_saw_of_it() -> None:
    reported = looks(None, 250.0, 40.0, 40.0, 100.0)
    work = ((0, 500 * MS, 0.0), (500 * MS, 9_000 * MS, 1.0))
    assert in_seconds(reported.corrected(work)) == [
        (0.0, 0.5, 0.0),
        (0.5, 2.0, 1.0),
        (2.0, 4.0, 0.4),
        (4.0, 9.0, 1.0),
    ]


def test_work_shorter_than_a_look_stays_work() -> None:
    reported = looks(None, 10.0, 10.0, 10.0)
    assert in_seconds(reported.corrected([(1_100 * MS, 1_800 * MS, 1.0)])) == [(1.1, 1.8, 1.0)]
    assert in_seconds(looks().corrected([(0, 9 * S, 1.0)])) == [(0.0, 9.0, 1.0)]


def test_a_step_that_hung_asleep_is_drawn_as_waiting() -> None:
    store, _ = session()
    for second in range(1, 12):
        store.ingest(processes(1_000 * second, process(1, cpu_percent=0.0)))
    store.ingest(delivered([], t_ms=1_500))
    open_saw = picture(store, 11_500).sawtooth
    store.ingest(delivered([step(1, 1_500, other_ms=10_000), step(2, 11_500, forward_ms=40)]))
    ended_saw = picture(store, 11_540).sawtooth
    for saw in (open_saw, ended_saw):
        assert saw is not None
        reported = saw.series.over(2 * S, 11 * S, saw.series.levels[0])
        assert reported is not None
        assert reported.mean == 0.0
