"""How a process that runs would have been started with the probe inside."""

import os
from collections.abc import Sequence
from typing import Final

import psutil

from ..launch.command import after_flags, is_python
from .process_kind import environ_of

ANY: Final = "gpuwatch run train.py"
"""Where its own command line is not known."""


def run_again(pid: int) -> str:
    """ "gpuwatch run train.py …". Of a rank what its launcher would have been started with."""
    try:
        process = psutil.Process(pid)
        parent = process.parent()
        words = process.cmdline()
        if parent is not None and "RANK" in environ_of(pid) and is_python(parent.cmdline()[0]):
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
