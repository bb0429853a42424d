"""Help whose examples can be typed, and completion that knows the words that there are."""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpuwatch_torch
from gpuwatch.tui.cli.completion import SHELLS, script
from gpuwatch.tui.cli.main import EPILOG, main, parser

TYPED = re.compile(r"^  (gpuwatch .*?)(?:  .*)?$")


def commands() -> dict[str, argparse.ArgumentParser]:
    (choice,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(choice.choices)


def examples_in(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if typed := TYPED.match(line):
            words = shlex.split(typed[1])
            yield words[1 : words.index("|") if "|" in words else None]


@pytest.mark.parametrize("name", commands())
def test_every_command_shows_examples_that_can_be_typed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = commands()[name].format_help()
    assert max(map(len, text.splitlines())) <= 80
    shown = list(examples_in(text))
    assert shown
    for words in shown:
        assert words[:1] == [name]
        assert parser().parse_args(words).run is not None


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    return capsys.readouterr().err


def test_an_unknown_option_leads_to_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refused(["record", "1", "-o", "f", "--second", "8"], capsys) == (
        "gpuwatch record: unrecognized arguments: --second 8\nSee: gpuwatch record --help\n"
    )
    assert "See: gpuwatch --help" in refused(["--onec"], capsys)


def test_nothing_to_start_is_said_by_the_command_that_would_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "Try: gpuwatch run train.py" in refused(["run"], capsys)
    text = refused(["lab"], capsys)
    assert "Try: gpuwatch lab -- train.py" in text
    assert "gpuwatch run" not in text


def test_ctrl_c_while_the_command_is_imported_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some 0.2 s at the start, on a machine that others use."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.machinery.SourceFileLoader.exec_module", interrupted)
    assert gpuwatch_torch.main() == 130


def test_so_does_the_whole() -> None:
    for words in examples_in(EPILOG):
        assert parser().parse_args(words).run is not None
    assert {words[0] for words in examples_in(EPILOG) if words} >= {"ls", "attach", "run", "doctor"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_knows_every_command_and_option(shell: str) -> None:
    text = script(shell)
    for name, command in commands().items():
        assert re.search(rf"\b{name}\b", text)
        for option in command._option_string_actions:
            if option == "-h":
                continue
            word = option if shell != "fish" else option.removeprefix("--")
            flag = f"-l {word}" if option.startswith("--") else f"-s {option[1:]}"
            assert (flag if shell == "fish" else word) in text, f"{name} {option}"


STAND_IN = r"""#!/bin/sh
case "$*" in
  "ls --json")
    echo '{"schema": 1, "pid": 101, "user": "ana", "script": "train.py", "argv": ["x"]}'
    echo '{"schema": 1, "pid": 202, "user": "ana", "script": "eval.py", "argv": []}' ;;
  "demo --list") printf 'NAME  VERDICT\ninput  input/workers\nstorage  input\n' ;;
  "demo --list --gpu") printf 'NAME  VERDICT\nrecorded  input/workers\n' ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = tmp_path / "gpuwatch"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (tmp_path / "run.gpuwatch").touch()
    (tmp_path / "train.py").touch()
    return tmp_path


CASES = [
    ("gpuwatch at", {"attach"}),
    ("gpuwatch attach ", {"101", "202"}),
    ("gpuwatch record 2", {"202"}),
    ("gpuwatch attach --inj", {"--inject"}),
    ("gpuwatch attach --theme d", {"dark"}),
    ("gpuwatch demo s", {"storage"}),
    ("gpuwatch demo --gpu ", {"recorded"}),
    ("gpuwatch completion f", {"fish"}),
    ("gpuwatch replay r", {"run.gpuwatch"}),
    ("gpuwatch run tr", {"train.py"}),
]


def asked(*command: str, folder: Path) -> str:
    """What a shell says, with our stand-in first on its PATH."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=20,
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), "TERM": "dumb"},
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash_offers_it(folder: Path, line: str, offered: set[str]) -> None:
    (folder / "completion").write_text(script("bash"))
    words = line.split(" ")
    text = f"""
        source completion
        COMP_WORDS=({" ".join(shlex.quote(word) for word in words)}) COMP_CWORD={len(words) - 1}
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_TYPE=9
        compopt() {{ :; }}
        _shtab_gpuwatch
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    completions = set(asked("bash", "--norc", "-c", text, folder=folder).split())
    assert completions >= offered
    if not line.startswith("gpuwatch run"):
        assert (
            completions == offered or {word for word in completions if word[:1] != "-"} == offered
        )


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_fish_offers_it(folder: Path, line: str, offered: set[str]) -> None:
    (folder / "completion").write_text(script("fish"))
    text = f"source completion; complete -C {shlex.quote(line)}"
    completions = {
        row.split("\t")[0] for row in asked("fish", "-c", text, folder=folder).splitlines()
    }
    assert completions >= offered
    if not line.startswith(("gpuwatch run", "gpuwatch replay")):
        assert completions == offered


def test_zsh_takes_the_script(folder: Path) -> None:
    (folder / "completion").write_text(script("zsh"))
    text = "autoload -Uz compinit; compinit -u -D; source ./completion; print $_comps[gpuwatch]"
    assert asked("zsh", "-f", "-c", text, folder=folder) == "_shtab_gpuwatch\n"


def test_no_other_command_loads_what_writes_the_scripts() -> None:
    code = "import sys, gpuwatch.tui.cli.main as m; m.parser(); sys.exit('shtab' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
