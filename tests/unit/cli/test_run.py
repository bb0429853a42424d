"""`gpuwatch run --attach`: what a mistake of ours does to the program."""

import pytest

from gpuwatch.tui.cli import run
from gpuwatch.tui.launch import inject, pty
from gpuwatch.tui.launch.command import Command
from gpuwatch.tui.terminal import Appearance


class Program:
    """Runs on until it is waited for."""

    pid = 1
    exit_status: int | None = None

    def close(self) -> int:
        self.exit_status = 0
        return 0


class NoProbe:
    pid = None

    def __init__(self, pid: int) -> None:
        pass

    def is_there(self) -> bool:
        return False


def test_the_program_is_waited_for_after_a_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our end would be the end of its terminal, and that its own."""
    program = Program()

    def relay(program: Program, over: object) -> None:
        raise RuntimeError("no running event loop")

    monkeypatch.setattr(pty, "OwnTerminal", lambda *_: program)
    monkeypatch.setattr(pty, "relay", relay)
    monkeypatch.setattr(inject, "ProbeBelow", NoProbe)
    with pytest.raises(RuntimeError):
        run._watched(Command("python", ("python",)), {}, Appearance())
    assert program.exit_status == 0
