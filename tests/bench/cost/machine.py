"""Where the training runs: on the host alone, and on a CUDA device where there is one.

Processes that are to know nothing of the device do not see it. This process stays off it.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests.measuring.child import ROOT, python_path

ASK: Final = """
import sys, torch
device = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
print("\\n" + "|".join((sys.version.split()[0], torch.__version__, device)))
"""


@dataclass(frozen=True)
class Side:
    """One of the two."""

    name: str
    environment: dict[str, str]
    """What its processes get besides ours."""


HOST: Final = Side("host", {"CUDA_VISIBLE_DEVICES": ""})
CUDA: Final = Side("CUDA", {})


@dataclass(frozen=True)
class Machine:
    """What figures are worth nothing without."""

    cores: int
    python: str
    torch: str
    device: str
    """ "" without one."""

    @property
    def name(self) -> str:
        """In a line."""
        device = self.device or "no GPU"
        return f"{self.cores} cores, {device}, Python {self.python}, torch {self.torch}"


@cache
def machine() -> Machine:
    """This one."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=120,
        check=True,
    )
    return Machine(len(os.sched_getaffinity(0)), *done.stdout.splitlines()[-1].split("|"))


def sides() -> list[Side]:
    """Those that are there."""
    return [HOST, CUDA] if machine().device else [HOST]
