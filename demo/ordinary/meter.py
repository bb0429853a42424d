"""How fast a script trains: printed when its time is up."""

import argparse
import json
import time
from typing import Final

import torch

WARM_UP_S: Final = 2.0
WARM_UP_STEPS: Final = 5

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"


def add_budget(parser: argparse.ArgumentParser) -> None:
    """The flag that every script has."""
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after; 0: never")


class Meter:
    """Counts steps, and says when the time is up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.steps = 0
        self._samples = 0
        self._first = 0
        self._started = time.perf_counter()
        self._began: float | None = None

    def update(self, samples: int) -> bool:
        """One more step over so many samples; True when it was the last."""
        now = time.perf_counter()
        self.steps += 1
        if self.steps == 1:
            print("first step done", flush=True)
            self._started = now
        self._samples += samples
        if self._began is None:
            if now - self._started >= WARM_UP_S and self.steps >= WARM_UP_STEPS:
                self._began, self._samples, self._first = _when_done(), 0, self.steps
            return False
        if not self.seconds or now - self._began < self.seconds:
            return False
        seconds = _when_done() - self._began
        steps = self.steps - self._first
        pace = {"steps_per_s": steps / seconds, "samples_per_s": self._samples / seconds}
        print(json.dumps(pace), flush=True)
        return True


def _when_done() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()
