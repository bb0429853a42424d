"""The text of the lines that stacks name, read from the target's own files.

py-spy does not see calls into C: a thread that waits in `loss.item()` stands, for it, on the line
of the user's that says so. What that line says is how the wait is known.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tui.sources.frames import is_users, place_of

MOST_FILES: Final = 64
MOST_BYTES: Final = 2_000_000
LONGEST: Final = 120
"""Characters of a line that are kept."""


class SourceLines:
    """Looks files up where the target would: beside its script, and where it stands."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._files: dict[str, list[str]] = {}

    def of(self, frames: Sequence[str]) -> str:
        """The innermost line of the user's own in a stack (outermost frame first), stripped; ""
        where there is none or its file cannot be read."""
        for frame in reversed(frames):
            path, number = place_of(frame)
            if number and is_users(path):
                return self._line(path, number)
        return ""

    def _line(self, path: str, number: int) -> str:
        lines = self._files.get(path)
        if lines is None:
            if len(self._files) >= MOST_FILES:
                self._files.clear()
            lines = self._files[path] = self._read(path)
        return lines[number - 1].strip()[:LONGEST] if number <= len(lines) else ""

    def _read(self, path: str) -> list[str]:
        for root in self._roots:
            for name in (path, os.path.basename(path)):
                file = root / name
                try:
                    if file.is_file() and file.stat().st_size <= MOST_BYTES:
                        return file.read_text(errors="replace").splitlines()
                except OSError:
                    continue
        return []


def roots_of(pid: int) -> list[Path]:
    """Where a process's own files may lie: its script's folder, and its working directory."""
    process = Path(f"/proc/{pid}")
    roots = [process / "cwd"]
    try:
        arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return roots
    scripts = [Path(argument) for argument in arguments[1:] if argument.endswith(".py")]
    return [process / "cwd" / script.parent for script in scripts[:1]] + roots
