"""Runs to compare: from real recordings, and made up."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from gpuwatch.tui.model.snapshot import Snapshot, unseen
from gpuwatch.tui.recording.format import Header
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.whole_run import WholeRun, read_whole
from gpuwatch.tui.steps import Step

RECORDINGS: Final = Path(__file__).parents[3] / "demo" / "recordings"
HEADER: Final = Header(
    gpuwatch="0",
    probe="0",
    torch="2.9",
    host="here",
    pid=1,
    script="train.py",
    started_ns=0,
    started_unix=0.0,
    begins_ns=0,
)
LAST: Final[Snapshot] = unseen(1, "train.py", 0, 0.0)


def recorded(name: str) -> WholeRun:
    """One of the recordings from an H200."""
    recording = Recording(RECORDINGS / f"{name}.gpuwatch")
    try:
        return read_whole(recording)
    finally:
        recording.close()


def of_times(times_ms: Sequence[float], samples: int | None = 32) -> WholeRun:
    """A run of steps of these lengths, half of each in the forward."""
    run, at_ns = WholeRun(HEADER), 0
    for number, time_ms in enumerate(times_ms, 1):
        wall_ns = round(time_ms * 1e6)
        half = wall_ns // 2
        run.steps.append(
            Step(number=number, count=1, start_ns=at_ns, end_ns=at_ns + wall_ns, data_ns=0,
                 startup_ns=0, forward_ns=half, backward_ns=wall_ns - half, optimizer_ns=0,
                 other_ns=0, evaluation_ns=0, checkpoint_ns=0, compile_ns=0, phases={}, fetches=1,
                 backwards=1, optimizer_steps=1, samples=samples, ready=None, data_max_ns=0,
                 inference=False)
        )  # fmt: skip
        at_ns += wall_ns
    return run


def slower(run: WholeRun, factor: float) -> WholeRun:
    """The same run with every step, and every phase of it, so much longer."""
    times = ("data_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns")
    out = WholeRun(run.header)
    for step in run.steps:
        longer = {name: round(getattr(step, name) * factor) for name in times}
        wall_ns = round((step.end_ns - step.start_ns) * factor)
        out.steps.append(msgspec.structs.replace(step, end_ns=step.start_ns + wall_ns, **longer))
    return out


def saving(run: WholeRun, each_ms: float) -> WholeRun:
    """The same run with a checkpoint of this length behind every step."""
    out, each_ns = WholeRun(run.header), round(each_ms * 1e6)
    for at, step in enumerate(run.steps):
        start_ns, end_ns = step.start_ns + at * each_ns, step.end_ns + (at + 1) * each_ns
        moved = msgspec.structs.replace(step, start_ns=start_ns, end_ns=end_ns)
        out.steps.append(msgspec.structs.replace(moved, checkpoint_ns=each_ns))
    return out


def halves(run: WholeRun, rng: random.Random) -> tuple[WholeRun, WholeRun]:
    """Two runs out of one, of which neither is the later: of each two stretches of ten steps, one
    goes to either, by lot. Neighbours stay neighbours, as in a run."""
    rows = run.steps[20:]
    dealt: tuple[list[Step], list[Step]] = ([], [])
    for at in range(0, len(rows), 20):
        first = rng.randrange(2)
        dealt[first].extend(rows[at : at + 10])
        dealt[1 - first].extend(rows[at + 10 : at + 20])
    made = (WholeRun(run.header), WholeRun(run.header))
    for out, steps in zip(made, dealt, strict=True):
        out.steps.extend(steps)
    return made


def correlated(count: int, mean_ms: float, seed: int, deviation: float = 0.05) -> list[float]:
    """Step times of which each takes after the one before (0.8 of it), as on a machine whose load
    comes and goes; now and then one that is three times as long."""
    rng, drift, out = random.Random(seed), 0.0, []
    for _ in range(count):
        drift = 0.8 * drift + rng.gauss(0.0, deviation) * 0.6
        length = mean_ms * (1 + drift)
        out.append(max(0.1, length * 3 if rng.random() < 0.005 else length))
    return out


def lasting(
    seconds: float, lasts_s: float, seed: int, deviation: float = 0.03, mean_ms: float = 100.0
) -> list[float]:
    """Step times of a run of about this length whose noise fades within `lasts_s` to a third, as
    beside a neighbour that comes and goes, or while clocks settle. 0: new in each step."""
    rng = random.Random(seed)
    kept = math.exp(-mean_ms / 1000 / lasts_s) if lasts_s else 0.0
    level, out = rng.gauss(0.0, 1.0), []
    for _ in range(round(1000 * seconds / mean_ms)):
        out.append(max(0.1, mean_ms * (1 + deviation * level)))
        level = kept * level + math.sqrt(1 - kept * kept) * rng.gauss(0.0, 1.0)
    return out
