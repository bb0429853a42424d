"""What can go wrong for a person: three short lines each (what, why, what to do), and a code."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

ORIGIN: Final = '"git+<clone URL>"'
"""What pip is to install: no registry has this distribution, and whoever put one there under its
name would be run. Where the clone comes from is for the reader to fill in."""

# `gpuwatch --version`: the versions that matter for a bug report.

DISTRIBUTION = "gpuwatch-torch"
PACKAGES = ("textual", "pyzmq", "msgspec", "psutil", "py-spy", "nvidia-ml-py", "torch")


def version_lines() -> list[str]:
    """One "name version" a line. Reads the packages' metadata and imports none of them."""
    rows = [("gpuwatch", version_of(DISTRIBUTION)), ("python", platform.python_version())]
    rows += [(name, version_of(name)) for name in PACKAGES]
    return [f"{name} {number}" for name, number in rows]


def version_of(distribution: str) -> str:
    """An installed distribution's version, or "not installed"."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


USAGE: Final = 2
NO_PROCESS: Final = 3
NOT_PERMITTED: Final = 4
NOTHING_TO_MEASURE: Final = 5
CONDITION_HOLDS: Final = 6
"""A condition of `--fail-if` holds."""


class GpuwatchError(Exception):
    """An end that the user can mend. Its `str` is its lines."""

    exit_code: int = 1

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what = what
        self.why = why
        self.fix = fix
        super().__init__("\n".join(line for line in (f"gpuwatch: {what}", why, fix) if line))


class UsageError(GpuwatchError):
    """The command line asks for something that does not exist."""

    exit_code = USAGE


class NoProcessError(GpuwatchError):
    """There is no such process."""

    exit_code = NO_PROCESS


class NotPermittedError(GpuwatchError):
    """It belongs to another user."""

    exit_code = NOT_PERMITTED


class NothingToMeasureError(GpuwatchError):
    """The process is there, and there is nothing in it to watch."""

    exit_code = NOTHING_TO_MEASURE
