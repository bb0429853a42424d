"""The past: near snapshots close together, far ones apart, nothing beyond an hour."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpuwatch.tui.model.snapshot import RunState, Snapshot
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.history import OLD_STEPS, Keyframes
from gpuwatch.tui.session.replay import Played
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.window import MemoryPoint
from tests.processes.command_line import ROOT
from tests.tui.fake_run import WithHistory
from tests.unit.faces.pictures import picture
from tests.unit.session.making import S, steps


def at(t_s: float) -> Snapshot:
    """The picture at a moment, with memory that was read every second until then."""
    now = picture(t_ns=round(t_s * S))
    points = tuple(MemoryPoint(i, i * S, i) for i in range(int(t_s) + 1))
    readings = tuple(
        GpuMemory(i * S, i, 0, i, i, i, i, i, at_backward=None, retries=0, ooms=0)
        for i in range(int(t_s) + 1)
    )
    return replace(now, memory=replace(now.memory, host=points), gpu_memory=readings)


def filled(until_s: int) -> Keyframes:
    """Two frames a second until then."""
    frames, now = Keyframes(), picture()
    for half in range(until_s * 2 + 1):
        frames.keep(replace(now, t_ns=half * S // 2))
    return frames


def found(frames: Keyframes, newest_s: int) -> Iterator[tuple[float, float]]:
    """How old every second is, and how much before it its picture was taken."""
    newest = picture(t_ns=newest_s * S)
    for t_s in range(0, newest_s, 3):
        yield newest_s - t_s, t_s - frames.at(t_s * S, newest).t_ns / S


def test_pictures_are_a_second_apart_then_ten_then_thirty() -> None:
    pictures = list(found(filled(1_000), 1_000))
    assert len(pictures) > 100
    for age_s, late_s in pictures:
        assert 0 <= late_s < (1 if age_s < 120 else 10 if age_s < 600 else 30)


def test_an_hour_is_remembered_and_not_more() -> None:
    frames = filled(4_000)
    assert frames.earliest_ns is not None
    assert 400 <= frames.earliest_ns / S <= 430
    assert len(frames) <= 120 + 48 + 100 + 3
    assert frames.at(0, picture(t_ns=4_000 * S)).t_ns == frames.earliest_ns


def test_what_grows_is_that_of_the_newest_picture_until_the_moment() -> None:
    frames, newest = Keyframes(), at(30)
    for t_s in range(20):
        frames.keep(at(t_s))
    past = frames.at(round(12.6 * S), newest)
    assert past.t_ns == 12 * S
    assert past.memory.host == at(12).memory.host
    assert past.gpu_memory == at(12).gpu_memory
    assert past.sawtooth is newest.sawtooth
    assert past.series is newest.series


def test_a_moment_that_has_not_come_is_the_newest_picture() -> None:
    frames, newest = Keyframes(), at(30)
    assert frames.at(30 * S, newest) is newest
    assert frames.at(5 * S, newest) is newest
    frames.keep(at(29))
    assert frames.at(31 * S, newest) is newest


def test_a_replay_that_hurries_keeps_what_it_would_have_kept() -> None:
    hurried = Keyframes()
    for t_s in range(1_001):
        hurried.keep(picture(t_ns=t_s * S), 1_000 * S)
    slow = filled(1_000)
    newest = picture(t_ns=1_000 * S)
    assert all(
        hurried.at(t_s * S, newest).t_ns == slow.at(t_s * S, newest).t_ns
        for t_s in range(0, 1_000, 7)
    )


class Clocked(WithHistory):
    """A run whose clock a test moves."""

    t_s = 0.0

    def snapshot(self) -> Snapshot:
        """The run now."""
        return at(self.t_s)


@pytest.fixture
def run() -> Clocked:
    """A run after 100 s of frames."""
    made = Clocked()
    for quarter in range(401):
        made.t_s = quarter / 4
        made.moment(None)
    return made


def test_a_pause_holds_the_very_picture_that_was_seen(run: Clocked) -> None:
    seen = run.snapshot()
    run.t_s = 137.0
    held = run.moment(100 * S)
    assert held.snapshot == seen
    assert (held.at_ns, held.newest_ns) == (None, 137 * S)


def test_the_past_stays_as_it_was_found_while_it_is_thinned_out(run: Clocked) -> None:
    first = run.moment(round(57.3 * S))
    assert (first.snapshot.t_ns, first.at_ns) == (57 * S, round(57.3 * S))
    for second in range(101, 400):
        run.t_s = second
        later = run.moment(round(57.3 * S))
    assert later.snapshot is first.snapshot
    assert later.newest_ns == 399 * S
    run.moment(None)
    assert run.moment(round(57.3 * S)).snapshot.t_ns == 50 * S


def test_a_long_pause_forgets_nothing_of_what_goes_on(run: Clocked) -> None:
    for second in range(101, 160):
        run.t_s = second
        run.moment(100 * S)
    assert run.moment(round(140.5 * S)).snapshot.t_ns == 140 * S
    assert (run.reach.earliest_ns, run.reach.latest_ns) == (0, 159 * S)


def test_older_pictures_keep_fewer_steps() -> None:
    frames, now = Keyframes(), picture(recent=tuple(steps(200, data_ms=1.0)))
    for t_s in range(300):
        frames.keep(replace(now, t_ns=t_s * S))
    newest = replace(now, t_ns=300 * S)
    assert len(frames.at(250 * S, newest).recent) == 200
    old = frames.at(100 * S, newest).recent
    assert old == now.recent[-OLD_STEPS:]


def test_older_pictures_are_otherwise_as_they_were() -> None:
    made = Recording(ROOT / "demo/recordings/loader_workers.gpuwatch")
    played = Played(made, Engine())
    played.play(made.until_ns, lambda: True)
    now = played.at(made.until_ns)
    assert now.trees is not None
    frames = Keyframes()
    for t_s in range(300):
        frames.keep(replace(now, t_ns=made.until_ns + t_s * S))
    newest = replace(now, t_ns=made.until_ns + 300 * S)
    old = frames.at(made.until_ns + 100 * S, newest)
    steps_then, gpu_then = now.recent[-OLD_STEPS:], now.recent_gpu[-OLD_STEPS:]
    assert old == replace(now, t_ns=old.t_ns, recent=steps_then, recent_gpu=gpu_then)
    assert made.until_ns + 80 * S < old.t_ns <= made.until_ns + 100 * S
    made.close()


def test_one_goes_back_to_the_first_picture_that_shows_anything() -> None:
    class Attaching(WithHistory):
        """The run's first message comes in its third second."""

        t_s = 0

        def snapshot(self) -> Snapshot:
            now = picture(t_ns=self.t_s * S)
            state: RunState = "connecting" if self.t_s < 2 else "live"
            return replace(now, status=replace(now.status, state=state))

    run = Attaching()
    for t_s in range(6):
        run.t_s = t_s
        run.moment(None)
        earliest_ns = run.reach.earliest_ns
        assert earliest_ns == (t_s if t_s < 2 else 2) * S
