"""`gpuwatch throughput`: why there is nothing to show."""

from dataclasses import replace

import pytest

from gpuwatch.tui.cli import target, throughput, watching
from gpuwatch.tui.cli.main import main
from gpuwatch.tui.discovery import pids
from gpuwatch.tui.discovery.pids import Watchable
from gpuwatch.tui.model.snapshot import RunState
from tests.unit.faces.pictures import STATUS, picture


def test_a_process_without_a_probe_is_not_said_to_make_no_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pids, "find_watchable", lambda pid: Watchable(pid, None, "train.py"))
    assert main(["throughput", "123"]) == 5
    printed = capsys.readouterr().err
    assert "process 123 has no probe" in printed
    assert "FLOPs" not in printed, "nobody is asked to count them"


@pytest.mark.parametrize(
    ("state", "why"), [("ended", "process 123 has ended"), ("live", "process 123 made no step")]
)
def test_a_process_that_has_ended_is_not_sent_to_the_doctor(
    state: RunState, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = replace(STATUS, state=state)
    monkeypatch.setattr(throughput, "probed", lambda pid, command: pid)
    monkeypatch.setattr(target, "watch_live", lambda *_, **__: None)
    monkeypatch.setattr(watching, "watch", lambda *_: picture(status=status, steps=None))
    assert main(["throughput", "123"]) == 5
    printed = capsys.readouterr().err
    assert why in printed
    assert ("gpuwatch doctor 123" in printed) is (state == "live")
