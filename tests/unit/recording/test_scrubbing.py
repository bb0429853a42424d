"""Back, forward and to the ends of a recording, and how long that may take."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import Delivered
from gpuwatch.tui.model.provider import ViewState
from gpuwatch.tui.recording.format import Entry, Looked
from gpuwatch.tui.recording.tape import kept
from gpuwatch.tui.screens.time_travel import TimeNavigation
from gpuwatch.tui.session.replay import SLICE_NS, Played, ReplayProvider
from gpuwatch.tui.verdict.engine import Engine
from tests.unit.recording.a_run import START, a_run
from tests.unit.recording.files import opened, recorded
from tests.unit.session.making import S, ScriptedEngine

LONG_S = 400
PLAYED_S = 130
"""Longer than is judged in full before a moment jumped to, and than what is passed over at once."""


class Hand:
    """A clock that a test moves; reading it takes `tick_ns`."""

    ns = 0
    tick_ns = 0

    def now_ns(self) -> int:
        """Where it stands."""
        self.ns += self.tick_ns
        return self.ns


def entries_of(seconds: float, only: Callable[[Entry], bool] = lambda _: True) -> list[Entry]:
    """A run as a recorder has it: judged once a second."""
    looks = count(START, S)
    due = next(looks)
    reported: list[Entry] = []
    for seen in a_run(seconds):
        while due < seen.t_ns:
            reported.append(Looked(t_ns=due))
            due = next(looks)
        if only(seen):
            reported.append(kept(seen))
    return reported


@pytest.fixture(scope="module")
def file() -> bytes:
    """Twelve seconds."""
    return recorded(entries_of(12.5))


@pytest.fixture(scope="module")
def long_file() -> bytes:
    """Steps and looks alone, for longer than is judged in full before a moment jumped to."""
    return recorded(entries_of(LONG_S, lambda seen: isinstance(seen, Delivered)))


@pytest.fixture
def hand() -> Hand:
    """The clock of the replay."""
    return Hand()


@pytest.fixture
def replay(tmp_path: Path, file: bytes, hand: Hand) -> Iterator[ReplayProvider]:
    """The twelve seconds, begun."""
    picture = ReplayProvider(opened(tmp_path, file), Engine(), hand)
    picture.moment(None)
    picture.start()
    yield picture
    picture.close()


def place(picture: ReplayProvider, held_ns: int | None = None) -> str | None:
    """Where the header says that it is."""
    return picture.moment(held_ns).snapshot.status.replay


def test_a_held_replay_stands_still_and_goes_on_from_there(
    replay: ReplayProvider, hand: Hand
) -> None:
    hand.ns += 5 * S
    assert place(replay) == "0:05 of 0:12 ▸ 1x"
    held_ns = replay.moment(None).newest_ns
    assert place(replay, held_ns) == "0:05 of 0:12 ■ paused"
    hand.ns += 60 * S
    assert place(replay, held_ns) == "0:05 of 0:12 ■ paused"
    assert place(replay) == "0:05 of 0:12 ▸ 1x"
    hand.ns += 2 * S
    assert place(replay) == "0:07 of 0:12 ▸ 1x"


def test_back_is_what_it_was_and_forward_is_what_it_will_be(
    replay: ReplayProvider, hand: Hand
) -> None:
    hand.ns += 3 * S
    early = replay.snapshot()
    hand.ns += 5 * S
    replay.moment(None)
    back = replay.moment(early.t_ns + S // 2)
    assert back.snapshot.verdict == early.verdict
    assert back.snapshot.t_ns == early.t_ns
    assert back.at_ns == early.t_ns + S // 2
    ahead = replay.moment(START + 11 * S)
    assert ahead.snapshot.t_ns == START + 11 * S
    assert ahead.at_ns is None
    assert ahead.snapshot.steps is not None
    assert early.steps is not None
    assert ahead.snapshot.steps.total > early.steps.total


def test_a_jump_gives_what_playing_gives(tmp_path: Path, file: bytes, hand: Hand) -> None:
    slow = ReplayProvider(opened(tmp_path, file), Engine(), hand)
    slow.start()
    for _ in range(44):
        hand.ns += S // 4
        played = slow.snapshot()
    jumped = ReplayProvider(opened(tmp_path, file), Engine(), Hand())
    jumped.start()
    reached = jumped.moment(START + 11 * S).snapshot
    assert (reached.verdict, reached.timeline) == (played.verdict, played.timeline)
    assert (reached.steps, reached.events[1:]) == (played.steps, played.events[1:])


def test_the_start_and_the_end_can_be_reached_and_left(replay: ReplayProvider) -> None:
    assert place(replay, replay.reach.latest_ns) == "0:12 of 0:12 ■ over"
    assert bool(replay.is_over)
    start = replay.moment(replay.reach.earliest_ns)
    assert start.snapshot.status.replay == "0:00 of 0:12 ■ paused"
    assert start.snapshot.status.state == "connecting"
    assert not replay.is_over
    assert place(replay) == "0:00 of 0:12 ▸ 1x"


def test_it_plays_through_the_past_and_on(replay: ReplayProvider, hand: Hand) -> None:
    hand.ns += 8 * S
    replay.moment(None)
    replay.go_to(START + 6 * S)
    totals = []
    for _ in range(12):
        hand.ns += S // 2
        moment = replay.moment(None)
        assert moment.snapshot.steps is not None
        totals.append(moment.snapshot.steps.total)
    assert place(replay) == "0:12 of 0:12 ▸ 1x"
    assert totals == sorted(totals)
    assert len(set(totals)) >= 9


def test_its_speed_is_doubled_and_halved_within_bounds(replay: ReplayProvider, hand: Hand) -> None:
    hand.ns += S
    replay.change_speed(+2)
    hand.ns += S
    assert place(replay) == "0:05 of 0:12 ▸ 4x"
    replay.change_speed(-20)
    assert place(replay) == "0:05 of 0:12 ▸ 0.125x"
    replay.change_speed(+20)
    assert place(replay) == "0:05 of 0:12 ▸ 64x"


def test_a_frame_takes_no_longer_than_its_slice_and_shows_where_it_goes(
    replay: ReplayProvider, hand: Hand
) -> None:
    end_ns = replay.reach.latest_ns
    hand.tick_ns = SLICE_NS // 50
    places = [place(replay, end_ns)]
    while places[-1] and "▸▸" in places[-1]:
        before_ns = hand.ns
        places.append(place(replay, end_ns))
        assert hand.ns - before_ns < 1.5 * SLICE_NS
    assert places[0] == "0:01 of 0:12 ▸▸ to 0:12"
    assert len(places) > 5
    assert places[-1] == "0:12 of 0:12 ■ over"


def test_a_replay_that_cannot_keep_its_pace_goes_as_fast_as_it_can(
    replay: ReplayProvider, hand: Hand
) -> None:
    replay.change_speed(+6)
    hand.tick_ns = SLICE_NS // 10
    seen = {place(replay) for _ in range(200)}
    assert any(where and "▸▸" in where for where in seen)
    assert "0:12 of 0:12 ■ over" in seen


def test_what_is_far_from_where_one_jumps_is_judged_seldom(
    tmp_path: Path, long_file: bytes
) -> None:
    engine = ScriptedEngine()
    played = Played(opened(tmp_path, long_file), engine)
    assert played.play(played.until_ns, lambda: True)
    judged = [(window.now_ns - START) / S for window in engine.windows]
    far = [t_s for t_s in judged if t_s < LONG_S - 61]
    near = [t_s for t_s in judged if t_s >= LONG_S - 61]
    assert 10 <= len(far) <= 13
    assert 59 <= len(near) <= 62
    assert played.passed_ns is not None
    assert played.passed_ns[0] - START <= S
    assert LONG_S - 65 < (played.passed_ns[1] - START) / S < LONG_S - 59


def test_what_was_passed_over_is_reported(tmp_path: Path, long_file: bytes, hand: Hand) -> None:
    picture = ReplayProvider(opened(tmp_path, long_file), ScriptedEngine(), hand)
    picture.start()
    texts = [event.text for event in picture.moment(START + 390 * S).snapshot.events]
    assert "passed over 0:00 to 5:29: judged every 30 s there" in texts


def test_playing_judges_everything(tmp_path: Path, hand: Hand) -> None:
    data = recorded(entries_of(PLAYED_S, lambda seen: isinstance(seen, Delivered)))
    engine = ScriptedEngine()
    picture = ReplayProvider(opened(tmp_path, data), engine, hand, speed=64)
    picture.start()
    while not picture.is_over:
        hand.ns += S // 4
        last = picture.snapshot()
    assert len(engine.windows) >= PLAYED_S - 1
    assert not any("passed over" in event.text for event in last.events)


def test_a_damaged_file_ends_where_the_damage_is(tmp_path: Path, file: bytes, hand: Hand) -> None:
    data = bytearray(file)
    data[len(data) * 2 // 3] ^= 0xFF
    picture = ReplayProvider(opened(tmp_path, bytes(data)), Engine(), hand)
    picture.start()
    where = place(picture, picture.reach.latest_ns)
    assert where is not None
    assert where.endswith("■ over: the rest of the file is damaged")
    at, _, until = where.partition(" ■")[0].partition(" of ")
    assert at == until < "0:12"
    assert place(picture, START + 4 * S) == f"0:04 of {until} ■ paused"


def test_going_back_holds_it_and_the_end_is_its_end(replay: ReplayProvider, hand: Hand) -> None:
    navigation, view = TimeNavigation(replay), ViewState(16)
    hand.ns += 9 * S
    view = navigation.back(view, -2)
    assert view.held_ns == START + 5 * S
    view = navigation.back(view, +1)
    assert view.held_ns == START + 7 * S
    view = navigation.end(view, +1)
    assert navigation.moment(view).snapshot.status.replay == "0:12 of 0:12 ■ over"
    view = navigation.back(view, -1)
    assert navigation.moment(view).snapshot.status.replay == "0:10.40 of 0:12 ■ paused"
    view = navigation.paused(view)
    assert navigation.moment(view).snapshot.status.replay == "0:10 of 0:12 ▸ 1x"
    assert navigation.change_speed(+1)


def test_one_step_back_is_where_a_step_begins(replay: ReplayProvider, hand: Hand) -> None:
    navigation, view = TimeNavigation(replay), ViewState(10)
    hand.ns += 6 * S
    view = navigation.paused(view)
    starts_ns = []
    for _ in range(3):
        view = navigation.one_step(view, -1)
        assert view.held_ns is not None
        starts_ns.append(view.held_ns)
    saw = navigation.moment(view).snapshot.sawtooth
    assert saw is not None
    assert set(starts_ns) <= set(saw.step_starts_ns)
    assert starts_ns == sorted(starts_ns, reverse=True)
    assert navigation.one_step(view, +1).held_ns == starts_ns[1]
    assert navigation.moment(view).snapshot.status.replay == "0:05.79 of 0:12 ■ paused"


def test_one_step_on_goes_beyond_what_was_played(replay: ReplayProvider, hand: Hand) -> None:
    navigation, view = TimeNavigation(replay), ViewState(10)
    hand.ns += 6 * S
    view = navigation.paused(view)
    places = [view.held_ns or 0]
    for _ in range(4):
        view = navigation.one_step(view, +1)
        places.append(view.held_ns or 0)
    saw = navigation.moment(view).snapshot.sawtooth
    assert saw is not None
    assert places == sorted(set(places))
    assert set(places[1:]) <= set(saw.step_starts_ns)


def test_far_back_it_shows_when_the_numbers_are_from(
    tmp_path: Path, long_file: bytes, hand: Hand
) -> None:
    picture = ReplayProvider(opened(tmp_path, long_file), ScriptedEngine(), hand)
    picture.start()
    assert place(picture, START + 390 * S) == "6:30 of 6:39 ■ paused"
    assert place(picture, START + 147 * S) == "2:27 of 6:39 ■ paused: numbers of 2:00"
    assert place(picture, START + 340 * S) == "5:40 of 6:39 ■ paused"
