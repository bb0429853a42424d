"""Scripts as processes of their own, for what is measured on a GPU."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(ROOT), str(ROOT / "demo"), os.environ.get("PYTHONPATH", "")))
    ),
}


@contextmanager
def started(command: list[str], log: Path) -> Iterator["subprocess.Popen[str]"]:
    """A script with its output in a file, or in a pipe where it has none."""
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=ENVIRONMENT,
            cwd=ROOT,
            start_new_session=True,  # so that its workers can be ended with it
        ) as process,
    ):
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def line_of(process: "subprocess.Popen[str]") -> str:
    """The next line of it."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("it has ended")
    return line.strip()


def send(process: "subprocess.Popen[str]", text: str = "") -> None:
    """A line to it."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()
