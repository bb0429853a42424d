"""The tape holds the last minutes; the recorder writes from there on, and says what goes wrong."""

import errno
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from gpuwatch.tui.model.observations import Delivered, Greeted, Missing
from gpuwatch.tui.recording import tape as tape_module
from gpuwatch.tui.recording.format import Entry, Header, Looked
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.recorder import Recorder, RecordingWriter
from gpuwatch.tui.recording.tape import SPAN_NS, Tape, kept
from gpuwatch.tui.session.live import LiveRecording, file_name
from tests.tui.fake_run import FakeRun, RunClock
from tests.unit.recording.a_run import SETTINGS, START, a_run
from tests.unit.recording.files import HEADER
from tests.unit.session.making import HELLO, S, delivered, loader, steps


def header(begins_ns: int | None) -> Header:
    return HEADER if begins_ns is None else Header(**{**_fields(), "begins_ns": begins_ns})


def nothing(begins_ns: int) -> None:
    """Was known before."""


def _fields() -> dict[str, Any]:
    return {name: getattr(HEADER, name) for name in Header.__struct_fields__}


def held(tape: Tape) -> list[Entry]:
    entries: list[Entry] = []
    tape.hand_over(entries.append)
    tape.let_go()
    return entries


def test_the_tape_gives_what_it_holds_and_then_what_comes() -> None:
    tape = Tape()
    seen = a_run(3)
    entries: list[Entry] = []
    for one in seen[:20]:
        assert tape.keep(one) == kept(one)
    assert tape.hand_over(entries.append) == START
    for one in seen[20:]:
        tape.keep(one)
    tape.looked(START + 3 * S)
    tape.let_go()
    tape.looked(START + 4 * S)
    assert entries == [*map(kept, seen), Looked(t_ns=START + 3 * S)]


def test_what_is_forgotten_leaves_what_everything_builds_on() -> None:
    tape = Tape()
    tape.keep(Greeted(t_ns=0, hello=HELLO))
    both = [loader(key=1), loader(key=2)]
    tape.keep(delivered(steps(2, forward_ms=5), loaders=both, settings=SETTINGS))
    tape.keep(Missing(t_ns=0, source="nvml", reason="no driver"))
    tape.keep(Missing(t_ns=0, source="stacks", reason="no py-spy"))
    tape.looked(0)
    tape.keep(delivered(steps(2, 3, 20, forward_ms=5), loaders=[loader(key=1, iterations=2)]))
    late = delivered(steps(1, 90, (SPAN_NS + 20 * S) / 1e6, forward_ms=5))
    tape.keep(late)
    entries = held(tape)
    assert [type(one).__name__ for one in entries] == [
        *("Greeted", "Missing", "Missing", "Delivered", "Delivered")
    ]
    standing = entries[3]
    assert isinstance(standing, Delivered)
    assert [(one.key, one.iterations) for one in standing.batch.loaders] == [(2, 1), (1, 2)]
    assert standing.batch.settings == SETTINGS
    assert standing.batch.steps[-1].number == 4
    assert entries[4] == kept(late)


def test_the_tape_is_bounded_however_fast_the_steps_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_module, "MOST_ROWS", 100)
    tape = Tape()
    for number in range(50):
        tape.keep(delivered(steps(20, 1 + 20 * number, 30 * number, forward_ms=1)))
    assert len(held(tape)) == 1 + 100 // 21


def test_a_recording_is_whole_and_ends_in_order(tmp_path: Path) -> None:
    tape = Tape()
    seen = a_run(3)
    for one in seen[:20]:
        tape.keep(one)
    asked = Event()

    def about(begins_ns: int | None) -> Header:
        asked.set()
        return header(begins_ns)

    recorder = Recorder(tmp_path / "a.gpuwatch", tape, about, nothing, overwrite=False)
    recorder.start()
    assert asked.wait(5)
    for one in seen[20:]:
        tape.keep(one)
    recorder.stop()
    assert recorder.fault is None
    recording = Recording(recorder.path)
    assert list(recording.entries()) == list(map(kept, seen))
    assert (recording.ends_early, recording.header.begins_ns) == (None, START)
    recording.close()


def test_a_file_that_is_there_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwatch"
    path.write_bytes(b"precious")
    recorder = Recorder(path, Tape(), header, nothing, overwrite=False)
    recorder.start()
    recorder.stop()
    assert recorder.fault == "File exists"
    assert path.read_bytes() == b"precious"


def recordable() -> LiveRecording:
    recording = LiveRecording(RunClock())
    recording.header = header
    return recording


@pytest.mark.parametrize(
    ("path", "why"),
    [("/dev/full", "No space left on device"), ("/no/such/folder/x", "No such file or directory")],
)
def test_what_goes_wrong_is_reported_in_the_picture(path: str, why: str) -> None:
    recording, now = recordable(), FakeRun().snapshot()
    recording.begin(Path(path), overwrite=True)
    shown = recording.shown_in(now)
    assert shown.status.recording in (path, None)
    while recording.fault is None:
        shown = recording.shown_in(now)
    assert recording.fault == why
    assert shown.status.recording is None
    assert any(why in event.text and path in event.text for event in shown.events)
    recording.close()


def test_a_disk_that_fills_up_leaves_whole_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = Tape()
    for one in a_run(2):
        tape.keep(one)
    path = tmp_path / "a.gpuwatch"
    with path.open("wb", buffering=0) as whole:
        writer = RecordingWriter(whole, HEADER)
        writer.write(held(tape))
        size = path.stat().st_size

        def half(data: memoryview) -> int:
            if len(data) < 10:
                raise OSError(errno.ENOSPC, "full")
            return type(whole).write(whole, data[: len(data) // 2])

        writer._file = _Failing(whole, half)  # type: ignore[assignment]
        with pytest.raises(OSError, match="full"):
            writer.write([Looked(t_ns=START + 9 * S)] * 500)
    assert path.stat().st_size == size


class _Failing:
    """A file whose disk fills up."""

    def __init__(self, file: Any, write: Any) -> None:
        self._file, self.write = file, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_key_begins_and_ends_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    control, now = recordable(), FakeRun().snapshot()
    control.tape.keep(Greeted(t_ns=START, hello=HELLO))
    control.toggle(now)
    name = control.shown_in(now).status.recording
    assert name is not None
    assert name.startswith("gpuwatch-train-48213-")
    control.toggle(now)
    while control.shown_in(now).status.recording is not None:
        pass
    shown = control.shown_in(now)
    assert shown.status.recording is None
    assert [event.text for event in shown.events[-2:]] == [
        f"recording to {name}",
        f"recorded {name}",
    ]
    recording = Recording(tmp_path / name)
    assert [type(one) for one in recording.entries()] == [Greeted]
    recording.close()
    control.close()


def test_a_name_is_made_of_what_a_shell_takes() -> None:
    name = file_name("my train (1).py", 7, 0.0)
    assert name.startswith("gpuwatch-my_train_1_-7-19")
    assert name.endswith(".gpuwatch")


def test_secrets_of_the_command_line_reach_neither_tape_nor_session() -> None:
    greeted = Greeted(t_ns=0, hello=replace(HELLO, argv=["train.py", "--token=hunter2", "--lr=1"]))
    tape = Tape()
    kept_one = tape.keep(greeted)
    assert isinstance(kept_one, Greeted)
    assert kept_one.hello.argv == ["train.py", "--token=***", "--lr=1"]
    assert "hunter2" not in repr(held(tape))
    assert Tape(whole_argv=True).keep(greeted) == kept(greeted)


def test_text_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    tape = Tape()
    tape.keep(Missing(t_ns=START, source="feed", reason="a name of other bytes: \udce9"))
    recorder = Recorder(tmp_path / "a.gpuwatch", tape, header, nothing, overwrite=False)
    recorder.start()
    recorder.stop()
    assert recorder.fault is not None
    assert "surrogates" in recorder.fault


def test_a_run_that_makes_loaders_for_ever_is_not_kept_whole() -> None:
    tape = Tape()
    for second in range(300):
        made = delivered(steps(1, forward_ms=1), loaders=[loader(key=second)])
        tape.keep(replace(made, t_ns=START + second * S))
    seen = (one for one in held(tape) if isinstance(one, Delivered))
    (standing,) = (one for one in seen if len(one.batch.loaders) > 1)
    assert len(standing.batch.loaders) == 32
