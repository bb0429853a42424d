"""What `gpuwatch run` is to start: a script, a module, or any program."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from tui.errors import UsageError

_PYTHON = re.compile(r"python(\d(\.\d+)?t?)?")


@dataclass(frozen=True, slots=True)
class Command:
    """A program and what it is to see as its command line."""

    path: str
    words: tuple[str, ...]


def command_of(words: Sequence[str], find: Callable[[str], str | None] = shutil.which) -> Command:
    """The command behind the words of a person: `train.py …`, `-m module …`, `torchrun …`.

    Raises UsageError where there is none, or no such program.
    """
    if not words:
        raise UsageError(
            "nothing to start",
            "run needs a script, a module, or a program",
            "Try: gpuwatch run train.py, gpuwatch run -m pkg.train, gpuwatch run torchrun train.py",
        )
    first = words[0]
    if first == "-m" or first.endswith((".py", ".pyw")):
        if first != "-m" and not os.path.isfile(first):
            raise UsageError(f"there is no script {first}", f"as seen from {os.getcwd()}")
        python = interpreter(find)
        return Command(python, (python, *words))
    path = find(first)
    if path is None:
        raise UsageError(
            f"there is no program {first}",
            "it is neither on the PATH nor a file that may be executed",
            f"A script that is not called .py: gpuwatch run python {first}",
        )
    return Command(path, tuple(words))


def interpreter(find: Callable[[str], str | None] = shutil.which) -> str:
    """The Python that trains: our own where it has torch, else the one that `python` means.

    A gpuwatch that was installed apart (pipx) has none.
    """
    if find_spec("torch") is not None:
        return sys.executable
    return find("python") or find("python3") or sys.executable


def is_python(word: str) -> bool:
    """Whether a program is a Python interpreter, by its name."""
    return _PYTHON.fullmatch(os.path.basename(word)) is not None
