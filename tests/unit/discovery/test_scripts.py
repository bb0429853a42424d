"""What a process runs, by its command line."""

from typing import cast

import psutil
import pytest

from gpuwatch.tui.discovery.targets import script_of_process


class Process:
    """One with this command line."""

    def __init__(self, *words: str) -> None:
        self._words = list(words)

    def cmdline(self) -> list[str]:
        return self._words

    def name(self) -> str:
        return "python3"

    def parent(self) -> None:
        return None


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python train.py --lr 3", "train.py"),
        ("python -u -O /home/me/train.py", "train.py"),
        ("python -X dev -W error train.py", "train.py"),
        ("python -Xdev -Werror train.py -c", "train.py"),
        ("python -m pkg.train --lr 3", "pkg.train"),
        ("python -um pkg.train", "pkg.train"),
        ("python -c print(1)", "-c"),
        ("python -u -c print(1)", "-c"),
        ("python", "python3"),
        ("python -i", "python3"),
    ],
)
def test_options_of_the_interpreter_are_no_script(line: str, script: str) -> None:
    """ "dev" was named for `-X dev train.py`, and the whole code behind `-u -c`."""
    process = cast(psutil.Process, Process(*line.split()))
    assert script_of_process(process) == script
