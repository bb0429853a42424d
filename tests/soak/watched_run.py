"""A run and two monitors of it, for as long as it takes; every so often a line of what all use.

Beside the watched run a twin trains with `GPUWATCH=0`: what grows in both is not ours, and its
losses are what the watched run's have to be. Everything is written as it is seen (`Files`), so that
a run that is cut off can be read too.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.processes.pseudo_terminal import ROOT, PseudoTerminal
from tests.soak.files import Files
from tests.soak.observed import Observed

WATCHED, TWIN = "watched", "bare"
SIZE: Final = (100, 30)
IS_UP: Final = "quit"
"""In the screen's footer: it takes keys."""
DETERMINISTIC: Final = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
LIMIT_S: Final = 240.0


def watch(files: Files, seconds: float, round_steps: int, limit_s: float = LIMIT_S) -> None:
    """Do all of it. Raises FileExistsError where the folder is neither new nor empty.

    Starting and ending may take `limit_s` together: then it says itself who hangs.
    """
    files.folder.mkdir(parents=True, exist_ok=True)
    if any(files.folder.iterdir()):
        raise FileExistsError(f"{files.folder} is not empty")
    until_s = time.monotonic() + limit_s
    with ExitStack() as stack:
        run = stack.enter_context(_training(files, WATCHED, round_steps))
        twin = stack.enter_context(_training(files, TWIN, round_steps, GPUWATCH="0"))
        for process in (run, twin):
            wait_ready(process, until_s)
        attach = ("gpuwatch.tui.cli.main", "attach", str(run.pid))
        lines = stack.enter_context(_monitor(files, attach))
        screen = stack.enter_context(PseudoTerminal(*attach, size=SIZE))
        screen.read_until(lambda: screen.shows(IS_UP), until_s - time.monotonic())
        about = {"began": time.time(), "cores": os.cpu_count()}
        files.about.write_text(json.dumps(about))
        observed = Observed(files, run, twin, lines, screen, until_s + seconds)
        observed.follow(seconds)
        files.closing.write_text(json.dumps(observed.close()))


@contextmanager
def _training(
    files: Files, name: str, round_steps: int, **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.training", str(files.folder), name, str(round_steps)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **DETERMINISTIC, **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_ready(process: "subprocess.Popen[str]", until_s: float) -> None:
    """Until a training says that it trains. Raises RuntimeError where it ends instead, or has not
    done so by that time of the monotonic clock."""
    assert process.stdout is not None
    left_s = max(0.0, until_s - time.monotonic())
    readable, _, _ = select.select([process.stdout], [], [], left_s)
    if not readable:
        raise RuntimeError(f"process {process.pid} does not train yet")
    line = process.stdout.readline()
    if line != "ready\n":
        raise RuntimeError(f"the training did not begin: {line!r}, status {process.poll()}")


@contextmanager
def _monitor(files: Files, attach: tuple[str, ...]) -> Iterator["subprocess.Popen[bytes]"]:
    with (
        open(files.attached, "ab") as out,
        subprocess.Popen(
            [sys.executable, "-m", *attach, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            cwd=ROOT,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()
