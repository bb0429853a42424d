"""A copy of this tree with a demonstration of its own."""

import json
import shutil
from pathlib import Path

from tests.processes.command_line import ROOT


def clone_with(folder: Path, script: str) -> Path:
    """A tree whose only demonstration is `script`, with what is compiled of ours; others may be
    about to compile more."""
    for package in ("gpuwatch", "probe", "tui"):
        shutil.copytree(
            ROOT / package,
            folder / package,
            symlinks=True,
            ignore=shutil.ignore_patterns("*.pyc.*"),
        )
    (folder / "demo").mkdir()
    (folder / "demo" / "only.py").write_text(script)
    row = {
        "name": "only",
        "script": "only.py",
        "kind": "input",
        "sub": None,
        "title": "t",
        "about": "a",
    }
    (folder / "demo" / "catalogue.json").write_text(json.dumps([row]))
    return folder
