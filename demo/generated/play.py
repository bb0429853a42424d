"""Train as a seed says, and measure what each change to the run would give.

    python demo/generated/play.py SEED [--device cuda] [--seconds 10]   # train, then say how fast
    python demo/generated/play.py SEED --describe                       # what the seed stands for
    python demo/generated/play.py SEED --examine                        # for demo/evaluate_runs.py

With `--examine` it waits for a line on stdin, trains until stdin ends, and then measures: the run
as it is and with each switch, in short turns of one process. What only a process's environment
changes takes turns of whole processes, each with the `--speed` of the first. `--probe` watches it;
or run it under `gpuwatch run`.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "scenarios")]

if "--probe" in sys.argv:
    import probe

    probe.install()

import argparse
import gc
import json
import resource
import select
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import torch
from machine import end_soon, stay_small

from generated.calibration import measured_speed, wait_for
from generated.draw import draw
from generated.feeding import Pace, measured_pace
from generated.models import Models, set_precision
from generated.switches import switches
from generated.training import Speed, Training
from generated.turns import next_turns

FIRST_STEP: Final = "first step done"
WARM_UP_S: Final = 1.0
ASK_EVERY_S: Final = 0.05
"""Whether to train on: in each step of 2 ms it was 8 % of the samples, which no turn has."""
SETTLE_S: Final = 0.25
"""Of each turn, before it counts: batches that a loader got ready while others had their turn are
used up by then, or after `SETTLE_BATCHES` for each worker and two more."""
SETTLE_BATCHES: Final = 2
"""A loader's own: DataLoader's `prefetch_factor`."""
LONGEST_TURN_S: Final = 12.0
"""A turn lasts until everything that comes now and then has come equally often. One that is cut
off here has one evaluation more or less than it should: nothing that it measures is a truth."""
LONGEST_S: Final = 30.0
"""Of turns, from which none but those that `--turns` asks for are begun."""
MOST_S: Final = 140.0
"""Of all that is measured. Who asks waits for three minutes: a run in which each change cannot take
one turn by then would be given up, and have held its GPU; another ends with what is known."""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    given = arguments(argv)
    spec = draw(given.seed, given.device)
    if given.describe:
        print(spec.describe())
        for switch in switches(spec):
            print(f"switch            {switch.name}: {' or '.join(switch.kinds)}")
        return 0
    if given.examine:
        sys.stdin.readline()
    if given.device == "cpu":
        stay_small()
        # A net that knows its one batch by heart has gradients that are denormal numbers, on which
        # a core is slow: a fused optimizer was 0.15x there, and is 1.2x without them.
        torch.set_flush_denormal(True)
    torch.manual_seed(given.seed)
    models = Models()
    with tempfile.TemporaryDirectory() as folder:
        # The steps that measure the machine are none of the run's.
        with unwatched():
            speed = given.speed or measured_speed(spec, models, measured_pace())
        set_precision(spec)
        training = Training(spec, models, speed, Path(folder))
        if given.examine:
            steps = watch(training)
            with unwatched():
                report = examine(models, speed, Turns(training, steps), given)
        else:
            report = plain(training, given.seconds)
        print(json.dumps(report), flush=True)
    return 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--describe", action="store_true", help="print the run, and do not train")
    parser.add_argument("--examine", action="store_true", help="train, then measure its switches")
    parser.add_argument("--probe", action="store_true", help="install the probe")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S")
    parser.add_argument("--turn-seconds", type=float, default=0.6, metavar="S")
    near = "with each switch near the best"
    parser.add_argument("--turns", type=int, default=2, metavar="N", help=near)
    known = "of the machine, as a run of this seed has measured and printed it"
    parser.add_argument("--speed", type=_speed, metavar="JSON", help=known)
    return parser.parse_args(argv)


def _speed(text: str) -> Speed:
    known = json.loads(text)
    return Speed(**{**known, "pace": Pace(**known["pace"])})


def watch(training: Training) -> Iterator[int]:
    """Train until stdin ends; returns the steps that are left, for ever."""
    steps, asked_s = training.steps(), 0.0
    for _samples in steps:
        if training.number == 1:
            print(FIRST_STEP, flush=True)
        if (now_s := time.perf_counter()) - asked_s < ASK_EVERY_S:
            continue
        asked_s = now_s
        if select.select([sys.stdin], [], [], 0)[0]:
            break
    return steps


@contextmanager
def unwatched() -> Iterator[None]:
    """Without the probe, where there is one."""
    names = [name for name in ("probe", "gpuwatch.probe") if name in sys.modules]
    ours = sys.modules[names[0]] if names else None
    if ours is not None:
        ours.uninstall()
    yield
    if ours is not None:
        ours.install()


class Turns:
    """One way to run, in its turns."""

    def __init__(self, training: Training, steps: Iterator[int]) -> None:
        self.training = training
        self.steps = steps
        self.cut = False
        """A turn was cut off before all had come equally often."""
        self.seconds = 0.0
        """Of all turns; of them in the kernel, its threads together; and the batches in them."""
        self.kernel_s = 0.0
        self.batches = 0

    def settle(self) -> None:
        """Train until what was ready before the turn is used up."""
        training, spec = self.training, self.training.spec
        set_precision(spec)
        settled = time.perf_counter() + SETTLE_S
        workers = spec.workers + spec.more_workers
        least = 2 + SETTLE_BATCHES * (workers if spec.feed == "loader" and not spec.ready else 1)
        first = training.number
        while time.perf_counter() < settled or training.number - first < least:
            next(self.steps)
        wait_for(spec)

    def take(self, seconds: float) -> float:
        """Train for about so long; returns samples a second."""
        self.settle()
        training = self.training
        began, samples, first = time.perf_counter(), 0, training.number
        kernel_s = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        while True:
            samples += next(self.steps)
            took = time.perf_counter() - began
            whole = (training.number - first) % training.period == 0
            if took >= max(LONGEST_TURN_S, seconds) or (took >= seconds and whole):
                self.cut = self.cut or not whole
                break
        wait_for(training.spec)
        took = time.perf_counter() - began
        self.seconds += took
        self.kernel_s += resource.getrusage(resource.RUSAGE_SELF).ru_stime - kernel_s
        self.batches += training.number - first
        return samples / took


def examine(
    models: Models, speed: Speed, as_it_is: Turns, given: argparse.Namespace
) -> dict[str, Any]:
    """Samples a second of the run as it is (""), and between two such turns with each switch."""
    training, ends_s = as_it_is.training, time.perf_counter() + MOST_S
    turns = {"": as_it_is}
    failed: dict[str, str] = {}
    for switch in switches(training.spec):
        if switch.environment:
            continue
        # A switch that cannot be made here (a net that no graph can hold) is no truth about it.
        try:
            changed = Training(switch.changed, models, speed, training.folder)
            ready = Turns(changed, changed.steps())
            ready.settle()
            turns[switch.name] = ready
        except Exception as error:
            failed[switch.name] = f"{type(error).__name__}: {error}"[:300]
        # Workers are forked next: one that collects what a graph left, as it failed, aborts.
        gc.collect()
    changes = [name for name in turns if name]
    first_s = time.perf_counter()
    taken = [("", as_it_is.take(given.turn_seconds))]
    took_s = time.perf_counter() - first_s
    if took_s * 2 * len(changes) > ends_s - time.perf_counter():
        sys.exit(f"too long to measure: {len(changes)} changes, turns of {took_s:.0f} s")
    over = time.perf_counter() + LONGEST_S
    while names := next_turns(taken, changes, given.turns, late=time.perf_counter() > over):
        left_s = ends_s - time.perf_counter()
        if len(taken) > 2 * len(changes) and took_s * 2 * len(names) > left_s:
            break
        for name in names:
            taken.append((name, turns[name].take(given.turn_seconds)))
            taken.append(("", as_it_is.take(given.turn_seconds)))
    return {
        "turns": taken,
        "cut": [name for name, each in turns.items() if each.cut],
        "in_kernel": as_it_is.kernel_s / as_it_is.seconds,
        "failed": failed,
        "speed": asdict(speed),
        "spec": asdict(training.spec),
    }


def plain(training: Training, seconds: float) -> dict[str, Any]:
    """Train for so long after a warm-up; how fast it was."""
    steps = training.steps()
    warm = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < warm:
        next(steps)
        if training.number == 1:
            print(FIRST_STEP, flush=True)
    turn = Turns(training, steps)
    rate = turn.take(seconds)
    return {
        "steps_per_s": turn.batches / turn.seconds,
        "samples_per_s": rate,
        "in_kernel": turn.kernel_s / turn.seconds,
    }


if __name__ == "__main__":
    end_soon()
    sys.exit(main())
