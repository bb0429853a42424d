"""`gpuwatch run`: which words are the program's, and what a mistake of ours does to it."""

import argparse

import pytest

from gpuwatch.tui.cli import run
from gpuwatch.tui.cli.main import parser
from gpuwatch.tui.cli.options import WITH_VALUE
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


def read(*words: str) -> argparse.Namespace:
    """As `main` reads them."""
    return parser(["run"]).parse_args(["run", *run.program_apart(words)])


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("-m", "av", "--", "x", "--lr", "3"), ["-m", "av", "--", "x", "--lr", "3"]),
        (("-mav", "x", "--lr", "3"), ["-m", "av", "x", "--lr", "3"]),
        (("-mav", "--attach"), ["-m", "av", "--attach"]),
        (("-m", "av", "a", "--", "x"), ["-m", "av", "a", "--", "x"]),
        (("-m", "av", "--theme", "light", "-h"), ["-m", "av", "--theme", "light", "-h"]),
        (("--", "-mav", "--", "x"), ["-m", "av", "--", "x"]),
        (("train.py", "--", "-m", "x"), ["train.py", "--", "-m", "x"]),
        (("--", "--odd", "x"), ["--odd", "x"]),
        (("-",), ["-"]),
        ((), []),
    ],
)
def test_what_follows_the_module_or_the_program_is_its_own(
    words: tuple[str, ...], program: list[str]
) -> None:
    """`-m av -- x` started av without arguments: a training with its defaults."""
    for ours in ((), ("--attach", "--theme", "light"), ("--fps=2", "--ascii")):
        given = read(*ours, *words)
        assert run.program_of(given) == program
        assert (given.attach, given.ascii) == ("--attach" in ours, "--ascii" in ours)


def test_options_that_a_value_follows_are_known() -> None:
    (chosen,) = (
        one for one in parser(["run"])._actions if isinstance(one, argparse._SubParsersAction)
    )
    actions = chosen.choices["run"]._actions
    valued = [name for one in actions if one.nargs is None for name in one.option_strings]
    assert sorted(valued) == sorted(WITH_VALUE)
