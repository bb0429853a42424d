"""How many steps a row of a state page stands for."""

from gpuwatch.tui.discovery.state_page import PageStep
from gpuwatch.tui.sources.ranks import counted_rows


def row(number: int, start_ns: int, end_ns: int) -> PageStep:
    return PageStep(number, start_ns, end_ns, 0, 0, 0, 0, 0, 0)


def counts(*rows: PageStep) -> list[tuple[int, int]]:
    return [(told.number, count) for told, count in counted_rows(list(rows))]


def test_rows_that_follow_each_other_tell_their_steps() -> None:
    assert counts(row(1, 0, 10), row(2, 10, 20), row(7, 20, 70)) == [(1, 1), (2, 1), (7, 5)]


def test_the_oldest_of_a_full_ring_is_left_out() -> None:
    assert counts(row(40, 0, 10), row(41, 10, 20)) == [(41, 1)]


def test_the_first_after_a_rest_is_left_out() -> None:
    assert counts(row(1, 0, 10), row(90, 800, 810), row(91, 810, 820)) == [(1, 1), (91, 1)]


def test_an_evaluation_between_steps_hides_none() -> None:
    assert counts(row(1, 0, 10), row(2, 500, 510)) == [(1, 1), (2, 1)]


def test_an_empty_page_tells_nothing() -> None:
    assert counts() == []
