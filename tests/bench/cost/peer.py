"""A training process with one tool, for `peers`: it trains in turns and is stopped in between."""

import json
import os
import signal
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import psutil

from tests.measuring.child import python_path
from tests.measuring.watcher import watching

SCRIPT: Final = Path(__file__).with_name("peer_script.py")
START_S: Final = 120.0
TURN_LIMIT_S: Final = 30.0
LEAVE_S: Final = 15.0
LOOK_S: Final = 0.01
SETTLE_S: Final = 0.2
"""Of a turn: samplers go on."""


class Peer:
    """One tool around the loops. Not stopped at first, since it has to start."""

    def __init__(self, tool: str, layers: str, files: Path, environment: dict[str, str]) -> None:
        self.tool = tool
        self._files = files
        self._turns = 0
        self._watched = ExitStack()
        files.mkdir()
        command = [sys.executable, str(SCRIPT)]
        if tool == "traceml":
            command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", str(SCRIPT)]
            command += ["--logs-dir", str(files / "logs"), "--run-name", "table"]
        with (files / "said").open("w") as text:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=subprocess.STDOUT,
                cwd=files,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": python_path(),
                    "PEER_FILES": str(files),
                    "PEER_TOOL": tool,
                    "PEER_LAYERS": layers,
                },
                start_new_session=True,
            )
        self._processes = [psutil.Process(self._process.pid)]

    def ready(self) -> None:
        """Wait until it is, and stop it: what it starts beside the training (samplers, servers)
        must not disturb the others' turns."""
        self._pid = int(self._await("ready", START_S))
        self._processes += self._processes[0].children(recursive=True)
        if self.tool == "gpuwatch":
            self._watched.enter_context(watching(self._pid))
        self._signal(signal.SIGSTOP)

    def train(self, loop: int, seconds: float) -> float:
        """Mean step of a turn of so many seconds, us."""
        turn = {"loop": loop, "settle_s": SETTLE_S, "seconds": seconds}
        number, self._turns = self._turns, self._turns + 1
        self._signal(signal.SIGCONT)
        part = self._files / "go.part"
        part.write_text(json.dumps(turn))
        part.rename(self._files / f"go.{number}")
        times = json.loads(self._await(f"done.{number}", TURN_LIMIT_S))
        self._signal(signal.SIGSTOP)
        return statistics.fmean(times) / 1e3

    def bye(self) -> None:
        """It may leave."""
        self._watched.close()
        (self._files / "bye").touch()
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Wait until it has left by itself, since launchers have children; then make it."""
        self.bye()
        try:
            self._process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            pass
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """To all of them: TraceML's server has a session of its own."""
        for process in self._processes:
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue

    def _await(self, name: str, limit_s: float) -> str:
        end_s = monotonic() + limit_s
        path = self._files / name
        while not path.exists():
            if monotonic() > end_s or self._process.poll() is not None:
                raise TimeoutError(f"{self.tool}: {(self._files / 'said').read_text()[-800:]}")
            sleep(LOOK_S)
        return path.read_text()
