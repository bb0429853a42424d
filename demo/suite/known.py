"""What an earlier suite measured of a scenario, so that its bare runs are not made again."""

from pathlib import Path

import msgspec

from suite.result import MEASURED, RESULT, Measured, Result, measured_in


def known(folder: Path, gpu: str | None) -> Measured | None:
    """What was measured for the run that this folder is of, on a GPU of this name.

    None where nothing was, or where it was on another kind of machine: what removing a cause gives
    on one GPU is no truth about another, nor about two cores. What was measured must have been
    judged.
    """
    if not (folder / MEASURED).exists():
        return None
    result = msgspec.json.decode((folder / RESULT).read_bytes(), type=Result)
    return measured_in(folder) if result.gpu == gpu else None
