"""A training script as a child process, from its start to its last worker."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from ..launch.follower import follower
from ..recording.format import SUFFIX

# The demonstrations: real training scripts, one bottleneck each.

PACKAGE: Final = Path(__file__).resolve().parent.parent
IN_A_WHEEL: Final = PACKAGE / "demo_scripts"
IN_A_CLONE: Final = PACKAGE.parent / "demo"


class Demo(msgspec.Struct, frozen=True):
    """One row of catalogue.json."""

    name: str
    script: str
    """File name, beside the catalogue."""
    kind: str
    """The verdict that it shows."""
    sub: str | None
    title: str
    about: str
    kind_without_gpu: str | None = None
    """The verdict where there is no GPU, if that is another."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All of them, and where they lie."""

    folder: Path
    demos: tuple[Demo, ...]

    @property
    def import_root(self) -> Path | None:
        """What a script of a clone needs on its path to find the probe; None once installed."""
        return self.folder.parent if self.folder == IN_A_CLONE else None

    def named(self, name: str | None) -> Demo | None:
        """A demonstration; the first of the catalogue without a name, None for an unknown one."""
        if name is None:
            return self.demos[0]
        return next((demo for demo in self.demos if demo.name == name), None)


def read_catalogue() -> Catalogue:
    """Read it from the installed package, or from the clone that this file lies in.

    Raises OSError where neither has it, ValueError when it is malformed.
    """
    folder = IN_A_WHEEL if IN_A_WHEEL.is_dir() else IN_A_CLONE
    rows = (folder / "catalogue.json").read_bytes()
    demos = msgspec.json.decode(rows, type=tuple[Demo, ...])
    if not demos:
        raise ValueError(f"{folder / 'catalogue.json'} names no demonstration")
    return Catalogue(folder, demos)


def table(catalogue: Catalogue) -> list[str]:
    """One line each: name, verdict, what it is."""
    rows = [("NAME", "VERDICT", "WHAT")]
    for demo in catalogue.demos:
        verdict = f"{demo.kind}/{demo.sub}" if demo.sub else demo.kind
        if demo.kind_without_gpu:
            verdict += f" ({demo.kind_without_gpu} without a GPU)"
        rows.append((demo.name, verdict, demo.title))
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"{name:{first}}  {verdict:{second}}  {what}" for name, verdict, what in rows]


GRACE_S: Final = (5.0, 3.0)
"""For SIGINT, then for SIGTERM; what is left is killed."""
TAIL_LINES: Final = 15


class Training:
    """Runs `script` with this interpreter, in a session of its own so that ctrl-c at the monitor
    reaches the monitor only. It ends with the monitor, even one that was killed (on Linux)."""

    def __init__(self, script: Path, log: Path, import_root: Path | None) -> None:
        self.log = log
        environ = dict(os.environ)
        if import_root is not None:
            parts = [str(import_root), environ.get("PYTHONPATH", "")]
            environ["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-u", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,
                preexec_fn=follower(),
            )
        self.pid = self._process.pid
        # Whoever looks at it from outside then sees that it has ended, and no zombie.
        threading.Thread(target=self._process.wait, name="reaper", daemon=True).start()

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.poll()

    def end(self) -> None:
        """Ask it to end, then make it; its workers with it."""
        for number, grace_s in zip((signal.SIGINT, signal.SIGTERM), GRACE_S, strict=True):
            if self._process.poll() is not None:
                break
            self._process.send_signal(number)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nothing is left of its session
        self._process.wait()

    def tail(self) -> list[str]:
        """The last lines that it wrote."""
        text = self.log.read_text("utf-8", "replace")
        return text.splitlines()[-TAIL_LINES:]


def how_it_ended(status: int) -> str:
    """ "exit code 1", "SIGKILL"."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


# The recordings that come along: runs on a GPU, for people who have none.

FOLDER = "recordings"


class RecordedDemo(msgspec.Struct, frozen=True):
    """One row of recordings/catalogue.json: what was recorded, and the truth about it."""

    name: str
    title: str
    about: str
    file: str
    """File name, beside the catalogue."""
    kind: str
    """The verdict that is true."""
    sub: str | None
    gpu: str
    """"NVIDIA H200"."""
    torch: str
    """Version that it ran with."""
    recorded: date


@dataclass(frozen=True, slots=True)
class RecordedCatalogue:
    """All of them, and where they lie."""

    folder: Path
    demos: tuple[RecordedDemo, ...]

    def named(self, name: str | None) -> RecordedDemo | None:
        """A recording; the first without a name, None for an unknown one or where none is."""
        if name is None:
            return next(iter(self.demos), None)
        return next((demo for demo in self.demos if demo.name == name), None)


def read_recorded(folder: Path | None = None) -> RecordedCatalogue:
    """Read the catalogue of the installed package or of the clone, or the one in a folder.

    A folder without a catalogue has no recordings. Raises ValueError when one is malformed, names
    something twice, or names a file that is not there.
    """
    if folder is None:
        folder = (IN_A_WHEEL if IN_A_WHEEL.is_dir() else IN_A_CLONE) / FOLDER
    try:
        rows = (folder / "catalogue.json").read_bytes()
    except FileNotFoundError:
        return RecordedCatalogue(folder, ())
    demos = msgspec.json.decode(rows, type=tuple[RecordedDemo, ...])
    names = [demo.name for demo in demos]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{folder / 'catalogue.json'} names {', '.join(twice)} twice")
    for demo in demos:
        is_ours = demo.file == Path(demo.file).name and demo.file.endswith(SUFFIX)
        if not is_ours or not (folder / demo.file).is_file():
            raise ValueError(f"{folder} has no recording {demo.file!r} ({demo.name})")
    return RecordedCatalogue(folder, demos)


def recorded_table(catalogue: RecordedCatalogue) -> list[str]:
    """One line each: name, verdict, GPU, what it is."""
    rows = [("NAME", "VERDICT", "GPU", "WHAT")]
    for demo in catalogue.demos:
        verdict = f"{demo.kind}/{demo.sub}" if demo.sub else demo.kind
        rows.append((demo.name, verdict, demo.gpu.removeprefix("NVIDIA "), demo.title))
    name_width, verdict_width, gpu_width = (max(len(row[at]) for row in rows) for at in range(3))
    return [
        f"{name:{name_width}}  {verdict:{verdict_width}}  {gpu:{gpu_width}}  {what}"
        for name, verdict, gpu, what in rows
    ]
