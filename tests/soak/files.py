"""What a soak writes, and where: rows of JSON that are only ever added to."""

import json
from pathlib import Path
from typing import Any, Final

STOP: Final = "stop"
"""A file of this name ends the run with the round that it is in."""


class Files:
    """Those of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = folder / STOP
        self.about = folder / "about.json"
        """When it began, and on how many cores."""
        self.samples = folder / "samples.jsonl"
        """What all processes use."""
        self.attached = folder / "attach.jsonl"
        """All that `attach --json` reported."""
        self.closing = folder / "closing.json"
        """How everybody left. Not there before."""
        self.report = folder / "report.md"

    def training(self, name: str) -> Path:
        """What a run says of itself, "watched" or "bare"."""
        return self.folder / f"{name}.jsonl"


def add(path: Path, row: dict[str, Any]) -> None:
    """A row, at once on disk."""
    with open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


def rows(path: Path) -> list[dict[str, Any]]:
    """Those that are complete."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
