"""`gpuwatch` as a person starts it: a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gpuwatch.tui.discovery.targets import start_ticks
from gpuwatch.tui.launch.as_target import script_of
from gpuwatch.tui.launch.command import BOOT
from tests.measuring.child import python_path

ROOT = Path(__file__).parents[2]
TOY = """
import os, time
import probe

probe.install()
print("armed", flush=True)
ends = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ends")
for _ in range({steps}):
    with probe.phase("load"):
        time.sleep(0.015)
    time.sleep(0.005)
    probe.step()
    if os.path.exists(ends):
        break
"""
"""Training as far as the monitor can see, in a process that starts in a moment. It ends in order
after its steps, or once a file "ends" lies beside it."""


def injected_script(action: str, answer: Path) -> str:
    """What `attach --inject` of this process would have another process run."""
    asked = {
        "text": (Path(BOOT) / "injected.py").read_text(encoding="utf-8"),
        "package": str(Path(BOOT).parent),
        "action": action,
        "monitor": [os.getpid(), start_ticks(os.getpid())],
    }
    return script_of(asked, str(answer))


def environment(**more: str) -> dict[str, str]:
    """Ours, without a terminal's size, with the packages of this tree before all others."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**kept, "PYTHONPATH": python_path(), **more}


def program(**waits_s: float) -> list[str]:
    """The command in front of its arguments. `waits_s`: constants by their dotted names below
    `gpuwatch.tui`, for tests of waits that are long for a person's sake."""
    if not waits_s:
        return [sys.executable, "-m", "gpuwatch.tui.cli.main"]
    lines = ["import importlib, sys"]
    for name, seconds in waits_s.items():
        module, _, constant = name.rpartition(".")
        lines.append(f"importlib.import_module('gpuwatch.tui.{module}').{constant} = {seconds}")
    lines += ["from gpuwatch.tui.cli.main import main", "sys.exit(main())"]
    return [sys.executable, "-c", "\n".join(lines)]


def gpuwatch(
    *arguments: str,
    limit_s: float = 30.0,
    waits_s: Mapping[str, float] | None = None,
    **more: str,
) -> "subprocess.CompletedProcess[str]":
    """Run it to its end, without a terminal."""
    return subprocess.run(
        [*program(**(waits_s or {})), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
        env=environment(**more),
        check=False,
    )


@contextmanager
def started(
    *arguments: str, stdout: "int | IO[Any]" = subprocess.PIPE, **more: str
) -> "Iterator[subprocess.Popen[str]]":
    """Run it beside the test; killed at the end if it still lives."""
    with subprocess.Popen(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def toy(folder: Path, steps: int = 100_000) -> "Iterator[subprocess.Popen[str]]":
    """A process with a probe that has begun to make steps of 20 ms."""
    path = folder / "toy.py"
    path.write_text(TOY.format(steps=steps))
    with subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "armed\n"
        try:
            yield process
        finally:
            process.kill()


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def wait_until_ended(pid: int, limit_s: float = 15.0) -> None:
    """Raises AssertionError when it stays."""
    end = time.monotonic() + limit_s
    while is_running(pid):
        assert time.monotonic() < end, f"{pid} still runs"
        time.sleep(0.02)
