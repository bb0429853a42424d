"""The table names what there is in the torch that is installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpuwatch.tui.session.stack_phases.table import NESTED, PHASES, ROWS, CodeRow

SPEC = find_spec("torch")
assert SPEC is not None
assert SPEC.origin is not None
PACKAGES = Path(SPEC.origin).parents[1]
OF_TORCH = [row for row in ROWS if row.file.startswith("torch/")]


@pytest.mark.parametrize("row", OF_TORCH, ids=lambda row: f"{row.phase}:{row.file}")
def test_a_row_of_torch_names_what_is_there(row: CodeRow) -> None:
    place = PACKAGES / row.file
    files = [place] if place.is_file() else list(place.rglob("*.py"))
    assert files, row.file
    text = "\n".join(file.read_text() for file in files)
    defined = set(re.findall(r"def (\w+)\(", text))
    assert row.functions <= defined


def test_every_phase_shows_what_may_lie_in_it() -> None:
    assert set(NESTED) == {*PHASES, "starting"}


def test_no_place_has_two_meanings() -> None:
    seen: dict[tuple[str, str], str] = {}
    for row in ROWS:
        for function in row.functions or {"*"}:
            assert seen.setdefault((row.file, function), row.phase) == row.phase
