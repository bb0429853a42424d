"""Runs that are kept for good: all of them, without the names of where they were made."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation import kept_runs
from evaluation.examined import Examined
from evaluation.kept_runs import RESULTS, keep, kept_in, recording_of
from gpuwatch.tui.model.observations import Greeted
from gpuwatch.tui.recording.format import Entry, Header
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.recorder import RecordingWriter
from tests.unit.evaluation.test_examined import examined, gain, look
from tests.unit.recording.a_run import START, a_run
from tests.unit.session.making import HELLO

HEADER = Header(
    gpuwatch="0",
    probe="0",
    torch=None,
    host=HELLO.host,
    pid=HELLO.pid,
    script="train.py",
    started_ns=START,
    started_unix=0.0,
    begins_ns=START,
)
RUN = examined(look("input"), gains=[gain("data", 2.0)])


def examined_in(folder: Path, name: str, seconds: float = 1.0, drawn: bool = True) -> Examined:
    """A run with its recording."""
    about = {"spec": {"seed": int(name)}} if drawn else {}
    run = replace(RUN, name=name, recording_bytes=round(1_000 * seconds), about=about)
    folder.mkdir(exist_ok=True)
    with (folder / recording_of(run)).open("wb", buffering=0) as file:
        writer = RecordingWriter(file, HEADER)
        for entry in a_run(seconds):
            writer.write([entry])
        writer.end()
    return run


def entries_in(file: Path) -> tuple[Header, list[Entry]]:
    recording = Recording(file)
    try:
        return recording.header, list(recording.entries())
    finally:
        recording.close()


def test_all_runs_are_kept_whatever_came_out(tmp_path: Path) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    runs = [
        examined_in(made, "4"),
        replace(examined_in(made, "7"), half="report", right=False),
        replace(examined_in(made, "8"), label="unclear"),
        examined_in(made, "dlrm", drawn=False),
    ]
    assert keep(runs, made, kept) == []
    assert [run.name for run in kept_in(kept / "cpu" / RESULTS)] == ["4", "7", "8"]
    assert [run.name for run in kept_in(kept / "ordinary" / RESULTS)] == ["dlrm"]
    assert {path.stem for path in (kept / "cpu").glob("*.gpuwatch")} == {"cpu-4", "cpu-7", "cpu-8"}


def test_runs_are_added_to_those_that_are_kept(tmp_path: Path) -> None:
    first, second, kept = tmp_path / "first", tmp_path / "second", tmp_path / "kept"
    keep([examined_in(first, "2"), examined_in(first, "10")], first, kept)
    keep(
        [replace(examined_in(second, "2"), verdict="host"), examined_in(second, "4")], second, kept
    )
    rows = kept_in(kept / "cpu" / RESULTS)
    assert [(run.name, run.verdict) for run in rows] == [
        *(("2", "host"), ("4", "input"), ("10", "input"))
    ]
    for run in rows:
        assert run.recording_bytes == (kept / "cpu" / recording_of(run)).stat().st_size


def test_what_there_is_no_room_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    runs = [examined_in(made, "2", seconds=20.0), examined_in(made, "4")]
    monkeypatch.setattr(kept_runs, "MOST_BYTES", 10_000)
    assert keep(runs, made, kept) == runs[:1]
    assert [path.name for path in kept.rglob("*.gpuwatch")] == ["cpu-4.gpuwatch"]
    assert sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) <= 10_000


def test_a_kept_recording_is_the_same_but_for_where_it_was_made(tmp_path: Path) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    run = examined_in(made, "4")
    keep([run], made, kept)
    before, old = entries_in(made / recording_of(run))
    after, new = entries_in(kept / "cpu" / recording_of(run))
    assert after.host == "host"
    assert after.script == before.script
    (greeted,) = (entry for entry in new if isinstance(entry, Greeted))
    assert greeted.hello.argv == ["/srv/train/train.py", "--epochs", "3"]
    assert not [word for word in ("ada", HELLO.host) if word in repr((after, new))]
    assert [entry for entry in new if entry is not greeted] == [
        entry for entry in old if not isinstance(entry, Greeted)
    ]
