"""An environment for one pair of Python and torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.versions.pairs import PACKAGES, Pair

INSTALL_S = 1800.0


class Missing(Exception):
    """The pair cannot be had here; says why."""


def environment_of(pair: Pair, folder: Path) -> Path:
    """Its interpreter, made where it is not there yet. Raises Missing."""
    home = folder / pair.name
    python, stamp = home / "bin" / "python", home / ".installed"
    if stamp.exists():
        return python
    _run([_interpreter(pair.python), "-m", "venv", "--without-pip", "--clear", str(home)], "venv")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    _run([*pip, f"torch=={pair.torch}", *PACKAGES], "pip")
    stamp.touch()
    return python


def _interpreter(version: str) -> str:
    """GPUWATCH_PYTHON_310 and its like, or what is on the PATH."""
    variable = f"GPUWATCH_PYTHON_{version.replace('.', '')}"
    found = os.environ.get(variable) or shutil.which(f"python{version}")
    if found is None:
        raise Missing(f"no python{version} here ({variable})")
    return found


def _run(words: list[str], what: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Missing(f"{what}: {last}")
