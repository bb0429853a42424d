"""Exported files: in the current folder, never over another file, else in the temp directory."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ..private_files import only_ours

MOST_TRIES: Final = 100
"""Taken names that are tried before giving up."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and why it is elsewhere if it is."""

    paths: tuple[Path, ...]
    why_elsewhere: str = ""


def export(
    files: Mapping[str, str | bytes], stem: str, folder: Path, spare: Path | None = None
) -> Exported:
    """Write each content as `stem` + its suffix into the folder, or into `spare` where that fails.

    `spare` is the temp directory by default. Raises OSError where that fails too.
    """
    try:
        return Exported(_write(files, stem, folder))
    except OSError as error:
        why = f"{folder.absolute()}: {os.strerror(error.errno) if error.errno else error}"
        return Exported(_write(files, stem, spare or Path(tempfile.gettempdir())), why)


def _write(files: Mapping[str, str | bytes], stem: str, folder: Path) -> tuple[Path, ...]:
    """All of them under one free stem, or none."""
    for number in range(1, MOST_TRIES + 1):
        numbered = stem if number == 1 else f"{stem}-{number}"
        written: list[Path] = []
        try:
            for suffix, content in files.items():
                path = folder / f"{numbered}{suffix}"
                with open(path, "xb", opener=only_ours) as file:
                    written.append(path)
                    file.write(content.encode() if isinstance(content, str) else content)
            return tuple(written)
        except OSError as error:
            for path in written:
                path.unlink(missing_ok=True)
            if not isinstance(error, FileExistsError):
                raise
    raise FileExistsError(f"{folder / stem} and {MOST_TRIES - 1} more exist already")


MOST_SCRIPT: Final = 60


def file_stem(script: str, pid: int, at_unix: float) -> str:
    """ "gpuwatch-train-4711-20261121-140301": script, process, local time."""
    stem = re.sub(r"[^\w.-]+", "_", Path(script).stem)[:MOST_SCRIPT] or "run"
    at = datetime.fromtimestamp(at_unix)
    return f"gpuwatch-{stem}-{pid}-{at:%Y%m%d-%H%M%S}"
