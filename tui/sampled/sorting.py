"""From a stack of the main thread to what the training does there."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tui.sampled import table
from tui.sampled.table import Phase, Row
from tui.sources.frames import is_users

_FRAME: Final = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(:\d+)?\)$")
_EVALUATES: Final = re.compile(table.EVALUATION_NAMES)
_EVALUATES_A_NET: Final = re.compile(table.EVALUATION_NAMES_OF_A_NET)
_NAMES: Final[tuple[tuple[Phase, re.Pattern[str]], ...]] = (
    ("checkpoint", re.compile(table.CHECKPOINT_NAMES)),
    ("data", re.compile(table.DATA_NAMES)),
)
_LINES: Final[tuple[tuple[Phase, re.Pattern[str]], ...]] = (
    ("backward", re.compile(table.BACKWARD_LINES)),
    ("optimizer", re.compile(table.OPTIMIZER_LINES)),
    ("synchronisation", re.compile(table.SYNC_LINES)),
    ("forward", re.compile(table.COMPUTE_LINES)),
)
_FOLDERS: Final = tuple(row for row in table.ROWS if row.file.endswith("/"))
_FILES: Final[dict[str, tuple[Row, ...]]] = {
    file: tuple(row for row in table.ROWS if row.file == file)
    for file in {row.file for row in table.ROWS if not row.file.endswith("/")}
}


@dataclass(frozen=True, slots=True)
class Told:
    """What one stack tells."""

    phase: Phase
    """Never "evaluation": that has phases of its own, and these are they."""
    evaluates: bool
    serial: bool
    """The training thread makes the batch itself."""


@lru_cache(maxsize=4096)
def told_by(frames: tuple[str, ...], line: str) -> Told:
    """What a stack tells, outermost frame first, each "function (file:line)".

    `line` is the text of the innermost line of the user's own, "" where it could not be read.
    """
    phase: Phase = "other"
    evaluates = may_evaluate = serial = False
    function, own = "", False
    for frame in frames:
        function, file = parts_of(frame)
        own = is_users(file)
        if own and phase == "other":
            evaluates = evaluates or bool(_EVALUATES.fullmatch(function))
            may_evaluate = may_evaluate or bool(_EVALUATES_A_NET.fullmatch(function))
        found = _by_name(function) if own else by_place(function, file)
        if found == "evaluation":
            evaluates = True
        elif found is not None and found in table.NESTED[phase]:
            phase = found
        runs_net = phase == "data" or function in table.RUNS_A_NET
        evaluates = evaluates or (may_evaluate and runs_net)
        serial = serial or (file == table.SERIAL.file and function in table.SERIAL.functions)
    if phase == "other" and own:
        phase = _by_line(line)
    return Told(phase, evaluates, serial and phase == "data")


@lru_cache(maxsize=16384)
def parts_of(frame: str) -> tuple[str, str]:
    """("_call_impl", "torch/nn/modules/module.py") of "Module._call_impl (torch/nn/…:1779)"."""
    match = _FRAME.match(frame)
    if match is None:
        return frame, ""
    return match["function"].rpartition(".")[2], match["file"]


def by_place(function: str, file: str) -> Phase | None:
    """What the table says of a function in a library's file."""
    for row in (*_FILES.get(file, ()), *_FOLDERS):
        if file.startswith(row.file) and (not row.functions or function in row.functions):
            return row.phase
    return None


def _by_name(function: str) -> Phase | None:
    return next((phase for phase, name in _NAMES if name.fullmatch(function)), None)


def _by_line(line: str) -> Phase:
    return next((phase for phase, text in _LINES if text.search(line)), "other")
