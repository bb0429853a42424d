"""What is started, in which environment, and what is known to be out of reach."""

import os
import sys
from pathlib import Path

import pytest

from gpuwatch.probe.installed import is_launcher
from gpuwatch.tui.discovery.command_lines import (
    ANY,
    command_for,
    is_interpreter,
    python_flags,
    run_again,
)
from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.launch.command import (
    BOOT,
    command_of,
    interpreter,
    why_unreached,
    with_probe,
)


def found(word: str) -> str | None:
    return f"/bin/{word}" if word in ("torchrun", "python") else None


def test_a_script_and_a_module_are_started_with_the_python_that_trains(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    for words in ([str(script), "--lr", "3"], ["-m", "pkg.train", "-x"]):
        command = command_of(words, found)
        assert command.path == sys.executable
        assert command.words == (sys.executable, *words)


def test_a_program_keeps_its_own_name() -> None:
    command = command_of(["torchrun", "train.py"], found)
    assert (command.path, command.words) == ("/bin/torchrun", ("torchrun", "train.py"))


def test_a_gpuwatch_without_torch_takes_the_python_on_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpuwatch.tui.launch.command.find_spec", lambda name: None)
    assert interpreter(found) == "/bin/python"
    assert interpreter(lambda word: None) == sys.executable


@pytest.mark.parametrize("words", [[], ["nix.py"], ["nix"]])
def test_what_is_not_there_is_reported(words: list[str]) -> None:
    with pytest.raises(UsageError):
        command_of(words, found)


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, BOOT), ("", BOOT), ("/a::/b", f"{BOOT}:/a::/b"), (f"{BOOT}:/a", f"{BOOT}:/a")],
)
def test_nothing_of_the_users_path_is_lost(before: str | None, after: str) -> None:
    given = {"HOME": "/root"} if before is None else {"HOME": "/root", "PYTHONPATH": before}
    made = {"HOME": "/root", "PYTHONPATH": after, "TORCH_FR_BUFFER_SIZE": "2000"}
    assert with_probe(given) == made
    assert with_probe(made) == made
    assert with_probe({**given, "TORCH_FR_BUFFER_SIZE": "0"})["TORCH_FR_BUFFER_SIZE"] == "0"
    assert os.path.isfile(os.path.join(BOOT, "sitecustomize.py"))


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("python train.py -I", ""),
        ("python -uI train.py", "uI"),
        ("python -W ignore -I train.py", "WI"),
        ("python -Wignore -X dev -E train.py", "WXE"),
        ("python -um pkg -I", "u"),
        ("python -c pass -I", ""),
        ("python --check-hash-based-pycs always -I x.py", "I"),
        ("python - -I", ""),
    ],
)
def test_the_interpreter_s_flags_end_where_its_program_begins(line: str, flags: str) -> None:
    assert python_flags(line.split()) == flags


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("/usr/bin/sudo python train.py", "sudo"),
        ("docker run x", "a container"),
        ("env -i python train.py", "env -i"),
        ("/opt/bin/python3.12 -Es train.py", "python -E"),
        ("python -S train.py", "python -S"),
    ],
)
def test_what_cannot_be_reached(line: str, text: str) -> None:
    why = why_unreached(line.split())
    assert why is not None
    assert text in why


@pytest.mark.parametrize(
    "line", ["python train.py -I", "env A=1 python train.py", "torchrun -E", "ipython -I x.py"]
)
def test_what_can_be_reached(line: str) -> None:
    assert why_unreached(line.split()) is None


def test_pythons_by_name() -> None:
    named = ["python", "/usr/bin/python3", "python3.14", "/x/python3.13t"]
    assert all(is_interpreter(name) for name in named)
    assert not any(
        is_interpreter(name) for name in ("pythonw", "ipython", "bpython3", "python-config")
    )


@pytest.mark.parametrize(
    "line",
    [
        "/env/bin/python /env/bin/torchrun --nproc-per-node 2 train.py",
        "python -u -m torch.distributed.run train.py",
        "python -um torch.distributed.run train.py",
        "python -X importtime -W error /env/bin/torchrun train.py",
        "python /env/bin/accelerate launch train.py",
        "python -m accelerate.commands.launch train.py",
        "python /env/lib/torch/_inductor/compile_worker/__main__.py --workers 4",
    ],
)
def test_launchers_are_known_by_their_command_line(line: str) -> None:
    assert is_launcher(line.split())


@pytest.mark.parametrize(
    "line",
    ["python -u train.py torchrun", "python -m train", "python", "python -c pass", "python -X"],
)
def test_who_trains_is_no_launcher(line: str) -> None:
    assert not is_launcher(line.split())


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("python train.py", "gpuwatch run train.py"),
        ("/venv/bin/python3.11 -u src/train.py --lr 3", "gpuwatch run src/train.py …"),
        ("python -W ignore -B -m pkg.train -x", "gpuwatch run -m pkg.train …"),
        ("python -Xdev -m pkg.train", "gpuwatch run -m pkg.train"),
        ("python /venv/bin/torchrun --nproc-per-node 2 train.py", "gpuwatch run torchrun …"),
        ("python /venv/bin/train-it", "gpuwatch run train-it"),
        ("python -c pass", ANY),
        ("python", ANY),
        ("", ANY),
    ],
)
def test_how_a_process_would_have_been_started(line: str, reported: str) -> None:
    assert command_for(line.split()) == reported


def test_a_process_that_has_ended_is_shown_the_general_way() -> None:
    assert run_again(2**22 + 1) == ANY
