"""`gpuwatch report PID`: what it says of the recording that it makes meanwhile."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.tui.cli import attach, target, watching
from gpuwatch.tui.cli.main import main
from gpuwatch.tui.model.snapshot import Event
from gpuwatch.tui.recording import reader, whole_run
from tests.unit.faces.pictures import STATUS, picture


def test_a_recording_that_is_deleted_as_it_ends_is_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[Path] = []

    def begin(path: Path, overwrite: bool) -> None:
        begun.append(path)

    def watch(*_: Any) -> Any:
        recorded = Event(0, None, f"recording to {begun[0]}", "recording")
        shown = picture(status=replace(STATUS, recording=str(begun[0])))
        return replace(shown, events=(*shown.events, recorded))

    provider = SimpleNamespace(recording=SimpleNamespace(begin=begin, fault=None))
    monkeypatch.setattr(attach, "resolve", lambda pid: SimpleNamespace(pid=pid))
    monkeypatch.setattr(target, "watch_live", lambda *_, **__: provider)
    monkeypatch.setattr(watching, "watch", watch)
    monkeypatch.setattr(reader, "Recording", lambda path: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(whole_run, "read_whole", lambda recording: None)
    assert main(["report", "48213", "--duration", "1"]) == 0
    report = "".join(capsys.readouterr().out.split())
    assert "48213" in report
    assert begun[0].name not in report
