"""The windows of an H200 that lie in h200/, as `tests.gpu.deep` wrote them."""

import gzip
import json
from pathlib import Path
from typing import Any

from gpuwatch.tui.trace.profile import Recorded, Window

FOLDER = Path(__file__).parent / "h200"


def recorded(raw: dict[str, Any]) -> Recorded:
    """One recording of the file."""
    marks = tuple((t_ns, kind) for t_ns, kind in raw["marks"])
    trace = json.dumps(raw["trace"]).encode()
    return Recorded(trace, tuple(raw["ends_ns"]), marks, tuple(raw["anchor"]))


def window(name: str) -> Window:
    """One of the files."""
    raw = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return Window(
        recorded(raw["times"]),
        recorded(raw["operators"]),
        tuple((t_ns, place) for t_ns, place in raw["looks"]),
        tuple(tuple((f, file, line) for f, file, line in place) for place in raw["places"]),
    )
