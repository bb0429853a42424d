"""Command lines: what a Python is to run, and how it would have been started with the probe."""

import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import psutil

from .process_kind import environ_of

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?t?)?")
WITH_A_VALUE: Final = "WX"
"""Python's flags that take the next word where nothing follows in their own."""
SAFE_LINE: Final = "import gpuwatch; gpuwatch.install()"
ANY: Final = "gpuwatch run train.py"
"""Where its own command line is not known."""


def run_again(pid: int) -> str:
    """ "gpuwatch run train.py …". Of a rank what its launcher would have been started with."""
    try:
        process = psutil.Process(pid)
        parent = process.parent()
        words = process.cmdline()
        if parent is not None and "RANK" in environ_of(pid) and is_interpreter(parent.cmdline()[0]):
            words = parent.cmdline()
    except (psutil.Error, IndexError):
        return ANY
    return command_for(words)


def other_probe(folder: str, python_path: str) -> str | None:
    """The file of another module that `import probe` finds in a script of this folder, None where
    that is ours. Asked of the interpreter that runs this: what another has installed is unseen."""
    folders = [folder, *filter(None, python_path.split(os.pathsep)), *sys.path]
    spec = PathFinder.find_spec("probe", folders)
    if spec is None or spec.origin is None:
        return None
    beside = Path(spec.origin).parent.parent / "gpuwatch_torch.py"
    return None if beside.exists() else spec.origin


def install_line(pid: int) -> str:
    """What its script is to have at its top: not `import probe` where that is another module."""
    try:
        process = psutil.Process(pid)
        script = next(iter(after_flags(process.cmdline())), "")
        folder = os.path.dirname(os.path.join(process.cwd(), script))
        found = other_probe(folder, environ_of(pid).get("PYTHONPATH", ""))
    except (psutil.Error, OSError):
        found = None
    return "import probe; probe.install()" if found is None else SAFE_LINE


def command_for(words: Sequence[str]) -> str:
    """For a command line; what it hands on is left out."""
    rest = list(after_flags(words))
    if rest[:1] == ["-m"] and len(rest) > 1:
        shown, handed_on = f"-m {rest[1]}", rest[2:]
    elif rest and not rest[0].startswith("-"):
        is_script = rest[0].endswith((".py", ".pyw"))
        shown, handed_on = rest[0] if is_script else os.path.basename(rest[0]), rest[1:]
    else:
        return ANY
    return f"gpuwatch run {shown}" + (" …" if handed_on else "")


def is_interpreter(word: str) -> bool:
    """Whether a program is a Python interpreter, by its name."""
    return _PYTHON.fullmatch(os.path.basename(word)) is not None


def python_flags(words: Sequence[str]) -> str:
    """The letters of the interpreter's own flags, up to what it is to run."""
    return _parsed(words)[0]


def after_flags(words: Sequence[str]) -> Sequence[str]:
    """What it is to run, from "-m", "-c" or the script on."""
    return words[_parsed(words)[1] :]


def _parsed(words: Sequence[str]) -> tuple[str, int]:
    """The letters, and where among the words they end."""
    letters, at = "", 1
    while at < len(words):
        word = words[at]
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        if not word.startswith("-") or word == "-":
            break
        for place, letter in enumerate(word[1:], start=1):
            if letter in "cm":
                return letters, at
            letters += letter
            if letter in WITH_A_VALUE:
                at += place == len(word) - 1
                break
        at += 1
    return letters, at
