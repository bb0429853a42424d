"""The training side of `cost`: blocks of steps, bare and with the probe, in random order.

`python -m tests.gpu.cost_blocks`. One process, since processes differ by more than the probe costs
(attach.md 6). Each round has two bare blocks, whose difference is the noise (A/A), one with the
probe installed and nobody looking, one watched from another process. Prints a JSON line a length.
"""

import json
import random
import subprocess
import sys
from time import monotonic
from typing import Any, Final

import torch

import probe
from probe import api
from tests.gpu.cost_figures import ARMS, BARE, BARE_AGAIN, UNWATCHED, WATCHED, Block, block
from tests.gpu.launch_loop import LaunchLoop, layers_for
from tests.gpu.shapes import one_thread

TARGETS_MS: Final = (2.0, 5.0, 20.0, 100.0)
ROUNDS: Final = {2.0: 14, 5.0: 14, 20.0: 12, 100.0: 8}
BLOCK_S: Final = 0.7
FEWEST_STEPS: Final = 8
SETTLE_S: Final = {BARE: 0.0, BARE_AGAIN: 0.0, UNWATCHED: 0.3, WATCHED: 0.7}
"""The publisher turns ten times a second; it looks for a device, and its budget finds its level."""
WATCHED_S: Final = 5.0


class Monitor:
    """The process that watches."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.on_call"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, words: str) -> None:
        """Watch, or rest."""
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it."""
        self._process.kill()


def run_block(arm: str, loop: LaunchLoop, steps: int, monitor: Monitor) -> Block:
    """One block. What the arm needs is put in place before, and taken away after."""
    if arm in (UNWATCHED, WATCHED):
        probe.install()
        loop.step()  # the probe of a process that had torch before is armed by a backward
        assert api._installed is not None
    if arm == WATCHED:
        _be_watched(loop, monitor)
    until_s = monotonic() + SETTLE_S[arm]
    loop.step()
    while monotonic() < until_s:
        loop.step()
    seen = block(loop.times_ns(steps))
    if arm in (UNWATCHED, WATCHED):
        monitor.say("rest")
        left = probe.uninstall()
        assert not left, left
    return seen


def _be_watched(loop: LaunchLoop, monitor: Monitor) -> None:
    installed = api._installed
    assert installed is not None
    assert installed._armed is not None
    monitor.say(f"watch {installed._armed._identity.endpoint}")
    until_s = monotonic() + WATCHED_S
    while not installed.recorder.watched:
        loop.step()
        if monotonic() > until_s:
            raise TimeoutError("nobody watches")


def measure(target_ms: float, layers: int, monitor: Monitor) -> dict[str, Any]:
    """All rounds of one length of step."""
    order = random.Random(0)
    loop = LaunchLoop(layers)
    loop.times_ns(20)
    steps = max(FEWEST_STEPS, round(1e3 * BLOCK_S / target_ms))
    rounds = []
    for _ in range(ROUNDS[target_ms]):
        arms = order.sample(ARMS, len(ARMS))
        rounds.append({arm: run_block(arm, loop, steps, monitor) for arm in arms})
    return {"target_ms": target_ms, "layers": layers, "steps": steps, "rounds": rounds}


def main() -> None:
    """Ready, then a line a length."""
    one_thread()
    if torch.cuda.is_available():
        torch.cuda.init()
    monitor = Monitor()
    try:
        counts = layers_for(TARGETS_MS)
        print("ready", flush=True)
        sys.stdin.readline()
        for target_ms, layers in zip(TARGETS_MS, counts, strict=True):
            print(json.dumps(measure(target_ms, layers, monitor)), flush=True)
    finally:
        monitor.kill()


if __name__ == "__main__":
    main()
