"""`gpuwatch --version`: the versions that matter for a bug report."""

import platform
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "gpuwatch-torch"
PACKAGES = ("textual", "pyzmq", "msgspec", "psutil", "py-spy", "nvidia-ml-py", "torch")


def version_lines() -> list[str]:
    """One "name version" a line. Reads the packages' metadata and imports none of them."""
    rows = [("gpuwatch", version_of(DISTRIBUTION)), ("python", platform.python_version())]
    rows += [(name, version_of(name)) for name in PACKAGES]
    return [f"{name} {said}" for name, said in rows]


def version_of(distribution: str) -> str:
    """Of an installed distribution, by its metadata; "not installed" for another."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
