"""The demonstrations: real training scripts, one bottleneck each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

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
