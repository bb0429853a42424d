"""A container made of this machine's own files, under whichever runtime works here.

No image is fetched: an archive of four links is imported, and the machine's /usr, Python and this
repository are mounted into it, all of them read-only.
"""

import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.processes.command_line import ROOT

IMAGE: Final = "localhost/gpuwatch-test:latest"
RUNTIMES: Final = (("docker",), ("podman",), ("podman", "--runtime=runc"))
"""The last where control groups of both versions are mounted, which crun does not take."""
TRY_S: Final = 60.0
MOST: Final = 4_096
"""Files, processes."""


@dataclass(frozen=True)
class Container:
    """One that runs."""

    runtime: tuple[str, ...]
    name: str

    @property
    def via(self) -> str:
        """For `--via`."""
        return " ".join((*self.runtime, "exec", "-i", self.name))

    def inside(self, *words: str) -> str:
        """What a command in it prints."""
        command = [*self.runtime, "exec", self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _image() -> bytes:
    """Links alone: the rest is mounted."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    return out.getvalue()


def _mounts() -> list[str]:
    places = {Path("/usr"), ROOT, Path(sys.prefix), Path(sys.base_prefix)}
    own = [one for one in places if not any(other in one.parents for other in places)]
    return [word for one in sorted(own) for word in ("--volume", f"{one}:{one}:ro")]


def _limits() -> list[str]:
    """Root's container is given more than root may have where CAP_SYS_RESOURCE is missing."""
    out = []
    for name, number in ("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC):
        hard = resource.getrlimit(number)[1]
        most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
        out.append(f"--ulimit={name}={most}:{most}")
    return out


def _fault(command: list[str], given: bytes | None = None) -> str | None:
    """None where it works; else the last line that it printed."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    words = done.stderr.decode(errors="replace").split("\n")
    return None if done.returncode == 0 else next((one for one in words[::-1] if one), "?")


def _working() -> tuple[tuple[str, ...], list[str]] | str:
    """A runtime and the options of its `run`; or why there is none."""
    why: list[str] = []
    for runtime in RUNTIMES:
        if shutil.which(runtime[0]) is None:
            why.append(f"no {runtime[0]}")
            continue
        if fault := _fault([*runtime, "import", "-", IMAGE], _image()):
            why.append(f"{' '.join(runtime)} import: {fault}")
            continue
        for how in [], _limits():
            options = [*how, "--pull=never", "--network=none", *_mounts()]
            fault = _fault([*runtime, "run", "--rm", *options, IMAGE, "/usr/bin/true"])
            if fault is None:
                return runtime, options
            why.append(f"{' '.join((*runtime, 'run', *how))}: {fault}")
        _fault([*runtime, "rmi", "--force", IMAGE])
    return "; ".join(dict.fromkeys(why))


@contextmanager
def container(folder: Path, script: str) -> Iterator[Container]:
    """Runs this Python script as its first process; skips the test where no runtime works."""
    found = _working()
    if isinstance(found, str):
        pytest.skip(found)
    runtime, options = found
    name = f"gpuwatch-test-{os.getpid()}"
    (folder / "train.py").write_text(script)
    path = f"{Path(sys.executable).parent}:/usr/bin"
    options += ["--volume", f"{folder}:/run/train:ro"]
    options += ["--env", f"PYTHONPATH={ROOT}", "--env", f"PATH={path}"]
    command = [*runtime, "run", "--rm", "--name", name, *options, IMAGE]
    with subprocess.Popen([*command, sys.executable, "-u", "/run/train/train.py"]) as process:
        try:
            yield Container(runtime, name)
        finally:
            _fault([*runtime, "kill", name])
            process.wait(TRY_S)
            _fault([*runtime, "rmi", "--force", IMAGE])
