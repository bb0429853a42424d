"""The recordings that come along: runs on a GPU, for people who have none."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec

from tui.cli.catalogue import IN_A_CLONE, IN_A_WHEEL
from tui.recording.format import SUFFIX

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
