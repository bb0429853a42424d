"""What every scenario shares: its command line, the count of its steps, and its closing line.

The closing line is one JSON object: steps and samples a second, measured after a warm-up and up to
the moment the GPU has finished. Run a scenario with and without its cause, and the ratio of the two
is what the cause really costs.
"""

import itertools
import json
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import FrameType
from typing import NoReturn

import torch
from machine import DEVICE, ON_GPU, end_soon, stay_small
from options import Options, options_of

__all__ = ["DEVICE", "ON_GPU", "Options", "Report", "Run", "play"]

WARM_UP_STEPS = 5
WARM_UP_S = 2.0
"""A run of S seconds starts to count after this many steps and seconds: by then the allocator,
cuDNN's choice of algorithms and the loader's queue have settled."""


@dataclass(frozen=True)
class Report:
    """What a run came to, after its warm-up."""

    steps: int
    seconds: float
    steps_per_s: float
    samples_per_s: float
    median_ms: float
    """Of the host's time from the end of a step to the end of the next."""


class Run:
    """Counts the steps of one run and says when it is over."""

    def __init__(self, options: Options) -> None:
        self.steps = 0
        """Steps done, warm-up included."""
        self._options = options
        self._warm_up_steps = WARM_UP_STEPS
        if options.steps:
            self._warm_up_steps = max(1, min(WARM_UP_STEPS, options.steps // 2))
        self._warm_up_s = 0.0 if options.steps else WARM_UP_S
        self._samples = 0
        self._began = 0.0
        self._changes_at = 0
        self._ends: list[float] = []
        """When the warm-up and every step since then ended, perf_counter seconds."""

    def count_from(self, step: int) -> None:
        """Count no step before this one, where its cause begins; not in a run of some steps."""
        self._changes_at = 0 if self._options.steps else step

    def finished(self, samples: int) -> bool:
        """Count one step over `samples` samples; True when it was the last."""
        now = time.perf_counter()
        self.steps += 1
        if self.steps == 1:
            self._began = now
            print("first step done", flush=True)
        if self._ends:
            self._ends.append(now)
            self._samples += samples
        elif self._is_warm(now):
            # One wait for the GPU, so that no work of the warm-up is counted; one more at the end.
            self._ends.append(_when_the_gpu_is_done())
        if self._options.steps and self.steps >= self._options.steps:
            return True
        seconds = self._options.seconds
        return bool(seconds and self._ends and now - self._ends[0] >= seconds)

    def _is_warm(self, now: float) -> bool:
        enough = self.steps >= max(self._warm_up_steps, self._changes_at)
        return enough and now - self._began >= self._warm_up_s

    def report(self) -> Report:
        """What the steps after the warm-up came to."""
        seconds = _when_the_gpu_is_done() - self._ends[0]
        steps = len(self._ends) - 1
        each = [after - before for before, after in itertools.pairwise(self._ends)]
        return Report(
            steps=steps,
            seconds=round(seconds, 3),
            steps_per_s=round(steps / seconds, 4),
            samples_per_s=round(self._samples / seconds, 2),
            median_ms=round(1_000 * statistics.median(each), 4) if each else 0.0,
        )


def play(
    train: Callable[[Options, Run], None],
    about: str | None,
    argv: Sequence[str] | None = None,
    causes: Sequence[str] = (),
) -> Report:
    """Read the options (from the process's command line without `argv`), train, and report.

    `causes` names them where there are several, the main one first.
    """
    options, wait = options_of(about, argv, causes)
    end_soon()
    # Leave through Python on SIGTERM too, so that a loader stops its workers.
    signal.signal(signal.SIGTERM, _terminated)
    if wait:
        sys.stdin.readline()
    if not ON_GPU:
        stay_small()
    torch.manual_seed(options.seed)
    # As most people set it, and so that only the scenario about precision is about precision.
    torch.set_float32_matmul_precision("high")
    run = Run(options)
    train(options, run)
    report = run.report()
    print(json.dumps(asdict(report)), flush=True)
    return report


def _when_the_gpu_is_done() -> float:
    if ON_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
