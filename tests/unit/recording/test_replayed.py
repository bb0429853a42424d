"""A replay has the verdicts of the live session, at their times."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import AnyObservation, TargetEnded
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.format import Entry
from gpuwatch.tui.recording.tape import Tape
from gpuwatch.tui.session.replay import ReplayProvider
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.history import Held, VerdictTimeline
from gpuwatch.tui.verdict.memory.trends import MemoryTrend
from gpuwatch.tui.verdict.window import Window
from tests.unit.recording.a_run import SETTINGS, START, a_run
from tests.unit.recording.files import opened, recorded
from tests.unit.session.making import MS, S, ScriptedEngine, judged


class Witness:
    """The engine, and every window that it was asked about with its verdict."""

    def __init__(self) -> None:
        self._engine = Engine()
        self.seen: list[tuple[Window, Verdict]] = []

    def judge(self, window: Window) -> Verdict:
        """As the engine judges."""
        verdict = self._engine.judge(window)
        self.seen.append((window, verdict))
        return verdict

    def timeline(self) -> VerdictTimeline:
        """The engine's."""
        return self._engine.timeline()

    def summary(self) -> tuple[Held, ...]:
        """The engine's."""
        return self._engine.summary()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """The engine's."""
        return self._engine.trends()


class Hand:
    """A clock that a test moves."""

    ns = 0

    def now_ns(self) -> int:
        """Where it stands."""
        return self.ns


def live(seen: Sequence[AnyObservation], frame_ms: float) -> tuple[list[Entry], Witness, Snapshot]:
    """A session that is looked at every so often; what its tape gave away, and what it judged."""
    entries: list[Entry] = []
    tape, witness = Tape(), Witness()
    tape.hand_over(entries.append)
    session = Session(48213, "train.py", START, witness, tape=tape)
    at_ns = START
    for one in seen:
        while at_ns + frame_ms * MS < one.t_ns:
            at_ns += round(frame_ms * MS)
            judged(session, at_ns, 0.0)
        session.ingest(one)
    return entries, witness, judged(session, seen[-1].t_ns, 0.0)


def replayed(folder: Path, data: bytes, frame_ms: float) -> tuple[Witness, Snapshot]:
    """The recording, looked at as often as that."""
    hand, witness = Hand(), Witness()
    picture = ReplayProvider(opened(folder, data), witness, hand)
    picture.start()
    while not picture.is_over:
        hand.ns += round(frame_ms * MS)
        snapshot = picture.snapshot()
    picture.close()
    return witness, snapshot


@pytest.mark.parametrize("frame_ms", [43, 250, 4_000])
def test_the_verdicts_are_the_same_however_often_somebody_looks(
    tmp_path: Path, frame_ms: float
) -> None:
    entries, witness, then = live(a_run(20), 250)
    again, now = replayed(tmp_path, recorded(entries), frame_ms)
    assert len(witness.seen) >= 15
    assert {verdict.finding.kind for _, verdict in witness.seen} - {"warming-up", "incomplete"}
    assert again.seen == witness.seen
    assert again.seen[-1][0].settings == SETTINGS
    assert "anomaly" in again.seen[-1][1].notes[0].text
    assert len(then.timeline.verdicts) >= 2
    assert (now.timeline, now.summary) == (then.timeline, then.summary)


def test_the_last_picture_is_the_same_and_stays(tmp_path: Path) -> None:
    entries, _, then = live(a_run(8), 250)
    hand = Hand()
    picture = ReplayProvider(opened(tmp_path, recorded(entries)), Engine(), hand)
    picture.start()
    hand.ns = 100 * S
    now = picture.snapshot()
    hand.ns = 1_000 * S
    later = picture.snapshot()
    picture.close()
    assert now == later
    assert (now.steps, now.verdict, now.gpus) == (then.steps, then.verdict, then.gpus)
    assert (now.stacks, now.memory, now.sawtooth) == (then.stacks, then.memory, then.sawtooth)
    assert now.status.state == "live"
    assert now.status.replay == "0:07 of 0:07 ■ over"


def test_it_waits_for_its_start_and_then_keeps_its_pace(tmp_path: Path) -> None:
    entries, _, _ = live(a_run(8), 250)
    hand = Hand()
    picture = ReplayProvider(opened(tmp_path, recorded(entries)), Engine(), hand, speed=2.0)
    hand.ns = 50 * S
    before = picture.snapshot()
    assert (before.steps, before.status.state) == (None, "connecting")
    picture.start()
    hand.ns += 2 * S
    middle = picture.snapshot()
    picture.close()
    assert middle.t_ns == START + 4 * S
    assert middle.t_unix == pytest.approx(1.8e9 + 4)
    assert middle.status.replay == "0:04 of 0:07 ▸ 2x"
    assert middle.steps is not None
    assert 70 < middle.steps.total < 82
    assert "replay of run.gpuwatch" in middle.events[0].text


def test_an_end_of_the_target_is_judged_once_as_it_was(tmp_path: Path) -> None:
    seen = a_run(6)
    ended = TargetEnded(t_ns=seen[-1].t_ns + S, code=0)
    entries, witness, _ = live([*seen, ended], 250)
    again, last = replayed(tmp_path, recorded(entries), 250)
    assert again.seen == witness.seen
    assert last.status.state == "ended"


def test_a_recording_that_breaks_off_shows_it(tmp_path: Path) -> None:
    entries, _, _ = live(a_run(6), 250)
    _, last = replayed(tmp_path, recorded(entries)[:-500], 250)
    assert last.status.replay is not None
    assert "0:04 of 0:04 ■ over: it was not ended in order" in last.status.replay


def test_a_session_without_a_tape_judges_as_ever() -> None:
    engine = ScriptedEngine()
    session = Session(1, "train.py", 0, engine)
    for at_ms in (0, 900, 1_100):
        judged(session, at_ms * MS, 0.0)
    assert len(engine.windows) == 2
