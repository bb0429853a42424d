"""The lines around a frame, read where the target's files are: its own, and those of its packages.

Only asked for when a person wants to see them, and on a thread that may wait for a disk.
"""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ....probe.wire import UNCOUNTED
from ... import clock
from ...discovery.state_page import PROC
from ...discovery.targets import stat_fields
from ...messages import Hello
from ...model.frames import place_of
from ...model.provider import SourceText
from ...model.snapshot import Snapshot
from ...verdict.code_origin import is_users

# File names as py-spy shortens them elsewhere: "torch/nn/functional.py", "train.py".

MOST: Final = 4_096
"""Files; a run has some hundred."""
PACKAGES: Final = "-packages"
"""Ends the names of the folders that packages are installed in: site's and Debian's."""


class ShortPaths:
    """Cuts off the folders that hold no package. Looks at the target's own files."""

    def __init__(self, pid: int) -> None:
        self._root = Path(f"/proc/{pid}/root")
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The path from its outermost package on; "<string>" and the like stay. What is installed
        and no library by its name keeps the folder of the installation, which tells it from the
        user's own: "site-packages/torchode/solvers.py"."""
        short = self._short.get(path)
        if short is None:
            if len(self._short) >= MOST:
                self._short.clear()
                self._long.clear()
            short = self._short[path] = self._shortened(path)
            self._long.setdefault(short, path.removesuffix(UNCOUNTED))
        return short

    def file_of(self, short: str) -> Path | None:
        """Where a file lies of which such a path was cut; None of one that was not seen."""
        path = Path(self._long.get(short, ""))
        return self._root / path.relative_to("/") if path.is_absolute() else None

    def _shortened(self, path: str) -> str:
        file = Path(path.removesuffix(UNCOUNTED))
        if not file.is_absolute():
            return path
        folder = file.parent
        while folder != folder.parent and self._is_package(folder):
            folder = folder.parent
        short = str(file.relative_to(folder))
        installed = (one for one in (folder, *folder.parents) if one.name.endswith(PACKAGES))
        if is_users(short) and (home := next(installed, None)) is not None:
            return f"{home.name}/{file.relative_to(home)}"
        return short

    def _is_package(self, folder: Path) -> bool:
        try:
            return (self._root / folder.relative_to("/") / "__init__.py").exists()
        except OSError:
            return False


# The text of the lines that stacks name, read from the target's own files.

MOST_FILES: Final = 256
MOST_BYTES: Final = 2_000_000
LONGEST: Final = 120
"""Characters of a line that are kept."""
APART_S: Final = 10.0
"""So far a file server's clock may be ahead of this machine's, and so long a program takes to load
its files."""


class SourceLines:
    """Looks files up where the target would: beside its script, and where it stands. A file that
    was changed since the target loaded it has other lines by now than those that run: none of
    it are given."""

    def __init__(
        self,
        roots: Sequence[Path],
        file_of: Callable[[str], Path | None] = lambda _: None,
        loaded: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`file_of`: the file of a path as it was cut, where that is known. `loaded`: when the
        target loaded its files, in seconds since 1970; None where that is not known."""
        self._roots = tuple(roots)
        self._file_of = file_of
        self._loaded = loaded
        self._loaded_s: float | None = None
        self._files: dict[str, list[str]] = {}
        self.changed: dict[str, None] = {}
        """The user's own files of which none are given, in the order in which they were seen."""

    def of(self, frames: Sequence[str]) -> str:
        """The innermost line of the user's own in a stack (outermost frame first), stripped; ""
        where there is none or its file cannot be read."""
        for frame in reversed(frames):
            path, number = place_of(frame)
            if number and is_users(path):
                return self._line(path, number)
        return ""

    def all_of(self, path: str) -> list[str]:
        """The lines of a file; none where it cannot be read."""
        lines = self._files.get(path)
        if lines is None:
            if len(self._files) >= MOST_FILES:
                self._files.clear()
            lines = self._files[path] = self._read(path)
        return lines

    def _line(self, path: str, number: int) -> str:
        lines = self.all_of(path)
        return lines[number - 1].strip()[:LONGEST] if number <= len(lines) else ""

    def _read(self, path: str) -> list[str]:
        known = self._file_of(path)
        files = [root / name for root in self._roots for name in (path, os.path.basename(path))]
        for file in files if known is None else (known, *files):
            try:
                if file.is_file() and file.stat().st_size <= MOST_BYTES:
                    return [] if self._is_changed(path, file) else lines_in(file)
            except OSError:
                continue
        return []

    def _is_changed(self, path: str, file: Path) -> bool:
        if self._loaded_s is None:
            self._loaded_s = self._loaded()
        if self._loaded_s is None or file.stat().st_mtime <= self._loaded_s + APART_S:
            return False
        if is_users(path):
            self.changed[path] = None
        return True


def lines_of(pid: int, file_of: Callable[[str], Path | None] = lambda _: None) -> SourceLines:
    """Those of one process's files."""
    return SourceLines(roots_of(pid), file_of, lambda: loaded_at(pid))


def loaded_at(pid: int, proc: Path = PROC) -> float | None:
    """When its first thread beside the main one began, which NumPy, torch or the probe starts as
    the script's imports are loaded; None while it has none. The process itself may be older: a
    shell that fetched the code, and then became Python."""
    try:
        others = (one for one in (proc / str(pid) / "task").iterdir() if one.name != str(pid))
        ticks = min((int(stat_fields(one)[19]) for one in others), default=None)
    except OSError:
        return None  # one has just ended: the next file asks again
    if ticks is None:
        return None
    return clock.now_unix() - clock.since_boot_s() + ticks / os.sysconf("SC_CLK_TCK")


def lines_in(file: Path) -> list[str]:
    """As Python counts them: a form feed or U+2028 ends none, and a byte order mark is no text."""
    with file.open(encoding="utf-8-sig", errors="replace") as text:
        return [line.removesuffix("\n") for line in text]


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


AROUND: Final = 40
"""Lines before and after."""


def read_around(frame: str, snapshot: Snapshot) -> SourceText:
    """The lines as the file is now, or why they cannot be shown."""
    path, number = place_of(frame)
    hello, link = snapshot.hello, snapshot.status.link
    if not number or path.startswith("<"):
        return _none(path, number, "this frame is in no file")
    if link is not None:
        return _none(path, number, f"its files are on {link.place}")
    if hello is None:
        return _none(path, number, "where its files are is not known without a probe")
    if hello.host != socket.gethostname():
        return _none(path, number, f"its files are on {hello.host}")
    file = found(path, [*own_folders(hello), *package_folders(hello)])
    if file is None:
        return _none(path, number, f"no {path} in its folders or its packages")
    try:
        lines = lines_in(file)
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
    prefixes = (one.parents[1] for one in (python, python.resolve()) if len(one.parents) > 1)
    for prefix in dict.fromkeys(prefixes):
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
