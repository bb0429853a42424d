"""The end of a turn."""

import os
import subprocess
import sys

import psutil
import pytest

from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.lab import turns


class Held:
    """A process that nobody can kill."""

    pid = 7

    def environ(self) -> dict[str, str]:
        return {turns.TURN_VARIABLE: "this one"}

    def status(self) -> str:
        return psutil.STATUS_RUNNING

    def kill(self) -> None:
        raise psutil.AccessDenied(self.pid)


def test_a_process_that_cannot_be_killed_ends_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next turn would be measured beside it."""
    monkeypatch.setattr(psutil, "process_iter", lambda: [Held()])
    monkeypatch.setattr(psutil, "wait_procs", lambda processes, timeout: ([], processes))
    monkeypatch.setattr(turns, "GONE_S", 0.0)
    with pytest.raises(GpuwatchError, match="process 7"):
        turns._kill_what_is_left("this one")


def test_what_others_have_started_is_left_alone() -> None:
    """Services that ran before the lab, whoever their parent is."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as service:
        turns._kill_what_is_left("a turn")
        assert service.poll() is None
        service.kill()


def test_what_a_turn_has_started_ends_whoever_its_parent_is() -> None:
    environ = {**os.environ, turns.TURN_VARIABLE: "a turn"}
    words = [sys.executable, "-c", "input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, env=environ, start_new_session=True) as rank:
        turns._kill_what_is_left("a turn")
        assert rank.poll() is not None
