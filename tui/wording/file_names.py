"""What files of ours are called."""

import re
from datetime import datetime
from pathlib import Path
from typing import Final

MOST_SCRIPT: Final = 60


def file_stem(script: str, pid: int, at_unix: float) -> str:
    """ "gpuwatch-train-4711-20261121-140301": script, process, local time."""
    stem = re.sub(r"[^\w.-]+", "_", Path(script).stem)[:MOST_SCRIPT] or "run"
    at = datetime.fromtimestamp(at_unix)
    return f"gpuwatch-{stem}-{pid}-{at:%Y%m%d-%H%M%S}"
