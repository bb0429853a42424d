"""How the state of looking goes on from key to key."""

from gpuwatch.tui.model.provider import Reach, ViewState, step_beside

S = 10**9
REACH = Reach(100 * S, 200 * S)


def test_a_pause_holds_the_moment_and_going_on_lets_go_of_it() -> None:
    held = ViewState(30).held(150 * S)
    assert (held.held_ns, held.moved) == (150 * S, False)
    assert held.behind_s(187 * S) == 37.0
    assert held.following() == ViewState(30)
    assert ViewState(30).behind_s(187 * S) is None


def test_one_moves_by_an_eighth_of_the_window_and_never_out_of_reach() -> None:
    held = ViewState(40).held(150 * S)
    back = held.at(150 * S - held.by_ns, REACH)
    assert (back.held_ns, back.moved) == (145 * S, True)
    assert back.at(0, REACH).held_ns == 100 * S
    assert back.at(900 * S, REACH).held_ns == 200 * S


def test_a_window_that_was_chosen_stays_chosen() -> None:
    followed = ViewState(10).over(30, chosen=False)
    assert (followed.window_s, followed.window_chosen) == (30, False)
    assert followed.over(120).over(10, chosen=False).window_chosen


def test_a_cursor_outlives_a_pause_and_a_window() -> None:
    reading = ViewState(10).reading(7 * S).held(9 * S).over(30)
    assert reading.cursor_ns == 7 * S
    assert reading.reading(None).cursor_ns is None


def test_the_step_beside_a_moment() -> None:
    starts = (10, 20, 30)
    assert [step_beside(starts, at, -1) for at in (10, 11, 20, 99)] == [None, 10, 10, 30]
    assert [step_beside(starts, at, +1) for at in (5, 10, 29, 30)] == [10, 20, 30, None]
    assert step_beside((), 7, -1) is None
