"""Recordings that an enemy made: small files that hold more than any run could."""

import io
import time
from pathlib import Path

import pytest

from gpuwatch.tui.cli import replay
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.format import LATEST_NS, Entry, Looked
from gpuwatch.tui.recording.recorder import RecordingWriter
from tests.unit.recording.a_run import START, a_run
from tests.unit.recording.files import HEADER, opened, recorded
from tests.unit.session.making import S

LIMIT_S = 30.0


class Counting:
    """Counts what is shown."""

    def __init__(self) -> None:
        self.shown = 0
        self.last_ns = 0

    def show(self, snapshot: Snapshot) -> None:
        self.shown += 1

    def last(self, snapshot: Snapshot) -> None:
        self.last_ns = snapshot.t_ns


def dense(entries: list[Entry]) -> bytes:
    """In as few frames as the format allows, and not one a second."""
    file = io.BytesIO()
    writer = RecordingWriter(file, HEADER)
    writer.write(entries)
    writer.end()
    return file.getvalue()


def reported(tmp_path: Path, data: bytes) -> tuple[Counting, str | None, float]:
    """What was shown of it, why it ended early, and the CPU time it took."""
    recording, face = opened(tmp_path, data), Counting()
    began = time.process_time()
    assert replay.play_to(recording, face, None) == 0
    return face, recording.ends_early, time.process_time() - began


def test_a_last_entry_in_a_century_is_shown_at_once(tmp_path: Path) -> None:
    far_ns = LATEST_NS - 1
    face, early, took_s = reported(tmp_path, recorded([*a_run(3), Looked(t_ns=far_ns)]))
    assert (early, face.shown < 100, took_s < LIMIT_S) == (None, True, True)
    assert face.last_ns >= far_ns - S


def test_an_entry_a_year_is_no_longer_than_the_entries_are(tmp_path: Path) -> None:
    year_ns = 365 * 86_400 * S
    entries: list[Entry] = [*a_run(1), *(Looked(t_ns=START + n * year_ns) for n in range(1, 50))]
    face, early, took_s = reported(tmp_path, recorded(entries))
    assert (early, face.shown < 100, took_s < LIMIT_S) == (None, True, True)


def test_a_judgement_each_microsecond_costs_no_more_than_one(tmp_path: Path) -> None:
    entries: list[Entry] = [*a_run(1), *(Looked(t_ns=START + S + n * 1_000) for n in range(50_000))]
    _, early, took_s = reported(tmp_path, dense(entries))
    assert early is None
    assert took_s < LIMIT_S


def test_more_than_a_file_of_its_size_can_hold_is_left_out_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay, "LEAST_CPU_NS", S // 2)
    entries: list[Entry] = [Looked(t_ns=START + n * S) for n in range(100_000)]
    data = dense(entries)
    assert len(data) < 50_000
    _, early, took_s = reported(tmp_path, data)
    assert early == replay.TOO_MUCH
    assert took_s < LIMIT_S
    assert replay.TOO_MUCH in capsys.readouterr().err
