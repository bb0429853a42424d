"""Run a script and time its DataLoader's fetches beside the probe: the truth about its data wait.

    python -m evaluation.timed_fetches FILE SCRIPT ARGUMENTS...

The probe knows nothing of it, and it nothing of the probe: it wraps the iterator's methods before
the script imports the probe, which then wraps them once more. FILE gets, when the script ends, the
beginning and end of every fetch and of making an iterator, perf_counter_ns.
"""

import json
import os
import runpy
import sys
from array import array
from pathlib import Path
from time import perf_counter_ns
from typing import Any


def main() -> None:
    """Run the script as Python would."""
    from torch.utils.data import dataloader

    file, script = Path(sys.argv[1]), sys.argv[2]
    times = array("q")
    trainer = os.getpid()
    for name in ("__init__", "__next__", "_reset"):
        _time(dataloader._BaseDataLoaderIter, name, times)
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if os.getpid() == trainer:
            file.write_text(json.dumps(list(zip(times[::2], times[1::2], strict=False))))


def _time(base: Any, name: str, times: "array[int]") -> None:
    original = getattr(base, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        begin_ns = perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            times.extend((begin_ns, perf_counter_ns()))

    setattr(base, name, timed)


if __name__ == "__main__":
    main()
