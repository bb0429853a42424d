"""Command lines: what a Python is to run, and how it would have been started with the probe."""

import os
import re
from collections.abc import Sequence
from typing import Final

import psutil

from .process_kind import environ_of

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?t?)?")
WITH_A_VALUE: Final = "WX"
"""Python's flags that take the next word where nothing follows in their own."""
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
