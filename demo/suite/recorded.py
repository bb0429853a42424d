"""A recording of a scenario that runs: the file that every verdict here is judged on."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from suite.catalogue import ROOT
from suite.launching import GRACE_S, FailedError, Launched

GPUWATCH: Final = (sys.executable, "-m", "gpuwatch.tui.cli.main")
MOST_S: Final = 300.0
"""For a script to come to its end."""


def record(launched: Launched, file: Path, seconds: float | None) -> None:
    """Write a recording of the running script from its first step on; None: to its end."""
    launched.wait_for_steps(probe=launched.job.probe)
    command = [*GPUWATCH, "record", str(launched.process.pid), "-o", str(file)]
    limit_s = MOST_S
    if seconds is not None:
        command += ["--duration", f"{seconds:g}"]
        limit_s = seconds + GRACE_S
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=limit_s, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        raise FailedError("gpuwatch record did not end") from None
    if done.returncode or not file.exists():
        said = " ".join(done.stderr.split())[-300:]
        raise FailedError(f"gpuwatch record ended with {done.returncode}: {said}")
    if seconds is not None and launched.process.poll() is not None:
        raise launched.failure("ended while it was recorded")
