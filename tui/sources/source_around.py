"""The lines around a frame, read where the target's files are: its own, and those of its packages.

Only asked for when a person wants to see them, and on a thread that may wait for a disk.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from probe.wire.messages import Hello
from tui.snapshot import Snapshot
from tui.source_text import SourceText
from tui.sources.frames import place_of
from tui.sources.source_lines import MOST_BYTES

AROUND: Final = 40
"""Lines before and after."""


def read_around(frame: str, snapshot: Snapshot) -> SourceText:
    """The lines as the file is now, or why they cannot be shown."""
    path, number = place_of(frame)
    hello = snapshot.hello
    if not number or path.startswith("<"):
        return _none(path, number, "this frame is in no file")
    if hello is None:
        return _none(path, number, "where its files are is not known without a probe")
    if hello.host != socket.gethostname():
        return _none(path, number, f"its files are on {hello.host}")
    file = found(path, [*own_folders(hello), *package_folders(hello)])
    if file is None:
        return _none(path, number, f"no {path} in its folders or its packages")
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError as error:
        return _none(path, number, f"{file}: {error.strerror}")
    if number > len(lines):
        return _none(path, number, f"{file} has {len(lines)} lines by now")
    first = max(1, number - AROUND)
    return SourceText(str(file), first, tuple(lines[first - 1 : number + AROUND]), number)


def own_folders(hello: Hello) -> list[Path]:
    """Its script's, and where it stood."""
    cwd = Path(hello.cwd)
    script = hello.argv[0] if hello.argv else ""
    return [(cwd / script).parent, cwd] if script.endswith(".py") else [cwd]


def package_folders(hello: Hello) -> list[Path]:
    """Of its Python: what was installed into it, and what came with it."""
    python = Path(hello.executable)
    folders: list[Path] = []
    if not python.is_absolute():
        return folders
    for prefix in dict.fromkeys((python.parents[1], python.resolve().parents[1])):
        for library in sorted(prefix.glob("lib/python3*")):
            folders += [library / "site-packages", library / "dist-packages", library]
    return folders


def found(path: str, folders: Sequence[Path]) -> Path | None:
    """The first of these folders that has the file, of a size that a person wrote."""
    for folder in folders:
        file = folder / path
        try:
            if file.is_file() and file.stat().st_size <= MOST_BYTES:
                return file
        except OSError:
            continue
    return None


def _none(path: str, number: int, why: str) -> SourceText:
    return SourceText(path, 1, (), number, why)
