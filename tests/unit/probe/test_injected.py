"""A probe that `attach --inject` put in, and whose monitor was killed."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuwatch.probe.boot import putting_in
from gpuwatch.tui.discovery.targets import start_ticks


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The probe as far as it can be taken out; `looks` says how often it was watched."""
    recorder = SimpleNamespace(watched=False)
    held = SimpleNamespace(_recorder=lambda: recorder, recorder=recorder, left=threading.Event())
    held.uninstall = held.left.set
    monkeypatch.setattr(
        putting_in, "import_ours", lambda name, _: held if name == "probe.api" else putting_in
    )
    yield held
    putting_in.OUT.set()


def missing() -> tuple[int, int]:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        ticks = start_ticks(process.pid)
        assert ticks is not None
    return process.pid, ticks


def staying(pid: int, ticks: int) -> threading.Thread:
    thread = threading.Thread(target=putting_in.stay, args=("/x/probe", pid, ticks, 0.001))
    thread.start()
    return thread


def test_it_leaves_when_its_monitor_was_killed_and_nobody_watches(
    api: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(putting_in, "DESERTED_S", 0.01)
    thread = staying(*missing())
    assert api.left.wait(10)
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("by", ["its own monitor", "another"])
def test_it_stays_as_long_as_somebody_is_there(
    api: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(putting_in, "DESERTED_S", 0.01)
    api.recorder.watched = by == "another"
    me = (os.getpid(), start_ticks(os.getpid()) or 0)
    thread = staying(*(me if by == "its own monitor" else missing()))
    assert not api.left.wait(0.2)
    putting_in.OUT.set()
    thread.join(10)
    assert not thread.is_alive()
    assert not api.left.is_set()


def test_a_pid_that_another_process_has_by_now_is_not_its_monitor() -> None:
    ticks = start_ticks(os.getpid()) or 0
    assert putting_in._is_there(os.getpid(), ticks)
    assert not putting_in._is_there(os.getpid(), ticks - 1)


def test_it_does_not_outlive_a_process_that_was_uninstalled(api: SimpleNamespace) -> None:
    api._recorder = lambda: None
    thread = staying(*missing())
    thread.join(10)
    assert not thread.is_alive()
    assert not api.left.is_set()


def test_the_module_stands_alone() -> None:
    """It is run by its file in a process that may have none of our packages."""
    text = Path(putting_in.__file__).read_text()
    assert "from ." not in text
