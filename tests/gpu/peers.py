"""Section `peers`: what TraceML, gpuprof and gpuwatch add to the same steps, in the same run.

TraceML cannot be taken out of a process again, so each tool has processes of its own; they train in
turn, in random order, one round after another. Figures are means of a block without the slowest
2 %, and of these the median over the rounds; what a tool adds is that less the bare one's.
"""

import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tests.gpu.child import ROOT, python_path
from tests.gpu.claims import Claim, broken
from tests.gpu.cost_figures import Block, block
from tests.gpu.watcher import watching

TARGETS_MS: Final = (2.0, 5.0, 20.0)
STEPS: Final = (400, 200, 60)
ROUNDS: Final = 3
MODULES: Final = {
    "bare": "torch",
    "gpuwatch": "probe",
    "traceml": "traceml_ai",
    "gpuprof": "gpuprof",
}
SCRIPT: Final = Path(__file__).with_name("peer_script.py")
START_S: Final = 90.0
RUN_S: Final = 60.0


class Peer:
    """A training process with one tool."""

    def __init__(self, tool: str, plan: str, files: Path) -> None:
        self.tool = tool
        self._files = files
        files.mkdir()
        command = [sys.executable, str(SCRIPT)]
        if tool == "traceml":
            command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", str(SCRIPT)]
            command += ["--logs-dir", str(files / "logs"), "--run-name", "table"]
        with (files / "said").open("w") as said:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=files,
                env={
                    **os.environ,
                    "PYTHONPATH": python_path(),
                    "PEER_FILES": str(files),
                    "PEER_TOOL": tool,
                    "PEER_PLAN": plan,
                },
                start_new_session=True,
            )

    def pid(self) -> int:
        """Of the process that trains, when it is ready to."""
        return int(self._await("ready", START_S))

    def train(self) -> list[Block]:
        """A block a length of step."""
        with watching(self.pid()) if self.tool == "gpuwatch" else nullcontext():
            (self._files / "go").touch()
            return [block(times) for times in json.loads(self._await("result.json", RUN_S))]

    def bye(self) -> None:
        """It may leave."""
        (self._files / "bye").touch()

    def end(self) -> None:
        """Wait until it has left by itself, since launchers have children; then make it."""
        self.bye()
        try:
            self._process.wait(8)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, 9)
        except ProcessLookupError:
            pass
        self._process.wait()

    def _await(self, name: str, limit_s: float) -> str:
        end_s = monotonic() + limit_s
        path = self._files / name
        while not path.exists():
            if monotonic() > end_s or self._process.poll() is not None:
                raise TimeoutError(f"{self.tool}: {(self._files / 'said').read_text()[-800:]}")
            sleep(0.05)
        sleep(0.05)
        return path.read_text()


def claims() -> Iterator[Claim]:
    """A row a tool and length of step."""
    there = [tool for tool, module in MODULES.items() if importlib.util.find_spec(module)]
    layers = _layers()
    plan = json.dumps(list(zip(layers, STEPS, strict=True)))
    seen: dict[str, list[list[Block]]] = {tool: [] for tool in there}
    order = random.Random(0)
    for _ in range(ROUNDS):
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
            ExitStack() as ends,
        ):
            peers = [Peer(tool, plan, Path(directory) / tool) for tool in there]
            for peer in peers:
                ends.callback(peer.end)
            for peer in order.sample(peers, len(peers)):
                try:
                    seen[peer.tool].append(peer.train())
                except Exception as error:
                    yield broken("cost beside others", peer.tool, error)
            for peer in peers:
                peer.bye()
    for tool in MODULES:
        if tool not in there:
            yield Claim("cost beside others", tool, "not there", "", None)
    for at, target_ms in enumerate(TARGETS_MS):
        yield from _rows(seen, at, f"{target_ms:.0f} ms, {layers[at]} layers")


def _rows(seen: dict[str, list[list[Block]]], at: int, loop: str) -> Iterator[Claim]:
    means_us = {
        tool: statistics.median(one[at][0] for one in blocks)
        for tool, blocks in seen.items()
        if blocks
    }
    bare_us = means_us.get("bare")
    for tool, mean_us in means_us.items():
        if bare_us is None:
            return
        added_us = mean_us - bare_us
        others = [us for other, us in means_us.items() if other not in ("bare", "gpuwatch")]
        first = tool == "gpuwatch" and bool(others)
        yield Claim(
            "cost beside others",
            f"{tool}, {loop}",
            f"{mean_us:.0f} us a step, {added_us:+.0f} us ({100 * added_us / bare_us:+.1f} %)",
            "the least of the tools" if first else "",
            mean_us <= min(others) if first else None,
            {"mean_us": mean_us, "added_us": added_us, "blocks": [one[at] for one in seen[tool]]},
        )


def _layers() -> list[int]:
    """Calibrated in a process of its own: this one keeps off the device."""
    code = "import sys, json; from tests.gpu.launch_loop import layers_for; "
    code += "from tests.gpu.shapes import one_thread; one_thread(); "
    code += f"print(json.dumps(layers_for({list(TARGETS_MS)})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=START_S,
        check=True,
    )
    layers: list[int] = json.loads(done.stdout.splitlines()[-1])
    return layers
