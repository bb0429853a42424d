"""What every script here shares: two options, a line of progress, and a quiet end."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import torch

PROGRESS_EVERY_S = 3.0
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
"""A GPU is so much quicker than a core that some sizes must grow for the same bottleneck."""
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2
"""Cores that this process may use."""


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    steps: int
    """Steps to run; 0 runs until stopped."""
    fix: bool
    """Run the same training with its bottleneck removed."""


class Progress:
    """Counts steps, and prints a line every few seconds."""

    def __init__(self, steps: int) -> None:
        self.steps = 0
        """Steps done."""
        self._wanted = steps
        self._printed_at = time.perf_counter()
        self._printed_steps = 0

    def finished(self, loss: torch.Tensor | None = None) -> bool:
        """Count one step; True when it was the last."""
        self.steps += 1
        last = self.steps == self._wanted
        elapsed = time.perf_counter() - self._printed_at
        if last or elapsed >= PROGRESS_EVERY_S:
            rate = (self.steps - self._printed_steps) / elapsed
            # `item` waits for the GPU, so it is asked for only when it is printed.
            shown = "" if loss is None else f"   loss {loss.item():.3f}"
            print(f"step {self.steps:6d}   {rate:6.1f} steps/s{shown}", flush=True)
            self._printed_at += elapsed
            self._printed_steps = self.steps
        return last


def run(train: Callable[[Options], None], about: str | None) -> NoReturn:
    """Parse the options, train, and end without a traceback when somebody stops it."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="0: until stopped")
    parser.add_argument("--fix", action="store_true", help="train without the bottleneck")
    arguments = parser.parse_args()
    if arguments.steps < 0:
        parser.error("--steps must be 0 or more")

    # Leave through Python on SIGTERM too, so that the loader stops its workers.
    signal.signal(signal.SIGTERM, _terminated)
    # One thread computes, so that the loader's workers have the other cores to themselves and
    # a step means the same on a laptop and on a server.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        train(Options(steps=arguments.steps, fix=arguments.fix))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    sys.exit(0)


def _terminated(signum: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signum)
