"""A recording that begins long after its run is judged by what the session knew."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpuwatch.tui.messages import Noted
from gpuwatch.tui.model.observations import Greeted
from gpuwatch.tui.recording.format import Header, Past
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.recorder import Recorder
from gpuwatch.tui.recording.tape import SPAN_NS, Tape
from gpuwatch.tui.session.replay import Played
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.memory.trends import of_tensors, of_the_process, of_workers
from gpuwatch.tui.verdict.window import RunEvent, Window
from tests.unit.recording.a_run import START
from tests.unit.recording.files import HEADER, read, recorded
from tests.unit.recording.test_replayed import Witness
from tests.unit.session.making import HELLO, S, delivered, process, processes, step
from tests.unit.session.test_memory_stores import READING
from tests.unit.verdict.windows import MIB

STEPS = 500
"""Of a second. The last two minutes are on the tape."""
A_STEP = MIB // 5
"""By which each memory grows: over 120 steps too little to be seen."""
LOOKED = 25


def watched(noted: Mapping[int, Sequence[Noted]] = {}) -> tuple[Session, Tape, Witness]:
    """A run whose memories grow, with a checkpoint at step 100, and what it has noted in steps."""
    tape, witness = Tape(), Witness()
    session = Session(48213, "train.py", START, witness, tape=tape)
    session.ingest(Greeted(t_ns=START, hello=HELLO))
    for number in range(1, STEPS + 1):
        saves = {"checkpoint_ms": 10} if number == 100 else {}
        made = step(
            number, START / 1e6 + 1_000 * (number - 1), forward_ms=900, other_ms=90, **saves
        )
        held, t_ns = 500 * MIB + number * A_STEP, made.end_ns
        read_then = replace(READING, t_ns=t_ns, step=number, allocated=held)
        notes = [replace(one, t_ns=t_ns - S // 2) for one in noted.get(number, ())]
        session.ingest(delivered([made], gpu_memory=[read_then], notes=notes))
        worker = process(11, "worker", pss_bytes=90 * MIB + number // 10 * 10 * A_STEP)
        session.ingest(processes(t_ns / 1e6 + 5, process(1, rss_bytes=held), worker))
        if number % LOOKED == 0:
            session.judge_if_due(t_ns + S // 10)
    return session, tape, witness


def begun_now(path: Path, session: Session, tape: Tape) -> Recording:
    """Somebody pressed R, and again."""

    def header(begins_ns: int | None) -> Header:
        assert begins_ns is not None
        return replace(HEADER, begins_ns=begins_ns)

    recorder = Recorder(path, tape, header, session.past, overwrite=False)
    recorder.start()
    recorder.stop()
    assert recorder.fault is None
    return Recording(path)


def points(window: Window) -> list[object]:
    """Of all three memories."""
    places = (of_tensors(window), of_the_process(window), of_workers(window))
    return [list(place.points) for place in places]


def test_memory_that_grew_before_grows_in_the_replay(tmp_path: Path) -> None:
    session, tape, live = watched()
    recording, again = begun_now(tmp_path / "a.gpuwatch", session, tape), Witness()
    assert recording.header.begins_ns > START + SPAN_NS
    played = Played(recording, again)
    played.play(recording.header.begins_ns + 40 * S, lambda: True)
    first = again.trends()
    played.play(recording.until_ns, lambda: True)
    now, then = played.at(recording.until_ns), session.snapshot(recording.until_ns, 0.0)
    recording.close()
    window, before = again.seen[-1][0], live.seen[-1][0]
    assert points(window) == points(before)
    assert RunEvent(100, "checkpoint") in window.moments
    assert window.moments == before.moments
    reported = [(one.whose, one.finding) for one in then.trends]
    assert [whose for whose, finding in reported if finding] == ["tensors", "process", "workers"]
    assert [one.whose for one in first if one.finding] == ["tensors", "process", "workers"]
    assert [(one.whose, one.slope) for one in now.trends] == [
        (one.whose, one.slope) for one in then.trends
    ]
    assert [series.name for series in now.series] == [series.name for series in then.series]


LOSS = Noted(0, "log", "loss", 0.5)
NAN = Noted(0, "log", "loss", 0.0, "nan")


def test_what_was_noted_once_before_is_known_in_the_replay(tmp_path: Path) -> None:
    counted = [Noted(0, "flops", "convolutions", 2e11), Noted(0, "flops", "counted", 1e12)]
    session, tape, _ = watched({50: counted, 109: [LOSS], 110: [NAN]})
    recording = begun_now(tmp_path / "a.gpuwatch", session, tape)
    played = Played(recording, Engine())
    played.play(recording.header.begins_ns + 40 * S, lambda: True)
    first = played.at(recording.header.begins_ns + 40 * S)
    played.play(recording.until_ns, lambda: True)
    now, then = played.at(recording.until_ns), session.snapshot(recording.until_ns, 0.0)
    recording.close()
    for shown in (first, now, then):
        assert shown.verdict.notes[0].text == "loss is NaN since step 110: stop the run or go back"
        assert shown.verdict.notes[0].urgent
        assert shown.throughput is not None
        assert shown.throughput.flops_step == 1e12
    assert now.numerics == then.numerics


def test_a_replay_does_not_know_what_is_to_come(tmp_path: Path) -> None:
    session, tape, _ = watched({100: [LOSS], 450: [NAN]})
    recording = begun_now(tmp_path / "a.gpuwatch", session, tape)
    played = Played(recording, Engine())
    texts = []
    for at_ns in (recording.header.begins_ns + 40 * S, recording.until_ns):
        played.play(at_ns, lambda: True)
        texts.append([note.text for note in played.at(at_ns).verdict.notes if note.urgent])
    recording.close()
    assert texts == [[], ["loss is NaN since step 450: stop the run or go back"]]


def test_a_number_that_became_finite_again_is_that_from_the_beginning(tmp_path: Path) -> None:
    session, tape, _ = watched({100: [NAN], 101: [LOSS], 490: [LOSS]})
    recording = begun_now(tmp_path / "a.gpuwatch", session, tape)
    played = Played(recording, Engine())
    played.play(recording.header.begins_ns + 40 * S, lambda: True)
    notes = played.at(recording.header.begins_ns + 40 * S).verdict.notes
    recording.close()
    assert notes[0].text == "loss was NaN at step 100 and is finite again"


def test_what_begins_with_its_run_has_no_past() -> None:
    session = Session(48213, "train.py", START, Witness())
    assert session.past(START) is None
    session.judge(START)
    assert session.past(START) is None


@pytest.mark.parametrize("reading", [{"allocated": -1}, {"step": 1 << 61}])
def test_a_past_that_no_run_can_have_is_refused(tmp_path: Path, reading: dict[str, int]) -> None:
    past = Past(t_ns=START, gpu_memory=(replace(READING, **reading),))
    entries, why = read(tmp_path, recorded([past]))
    assert (entries, why) == ([], "the rest of the file is damaged")
    fine = Past(t_ns=START, gpu_memory=(READING,), moments=(RunEvent(3, "epoch"),))
    entries, why = read(tmp_path, recorded([fine]))
    assert (entries, why) == ([fine], None)
