"""Whether steps after a profiler's window are as fast as before it, in pairs that run at once.

A window leaves no way back to a process that never had one, so every pair needs a fresh process,
and a host drifts by more than 1 % within seconds. So two loops of one kind train at the same time,
each pinned to a core of its own: before, a window in one of them, after. What both have in common
goes out of

    (after / before of the one with the window) / (after / before of the other).

The other one is still fresh, so it has the window in the next pair: one process a pair, and the
windows alternate between the GPUs and the cores (with one GPU both are on it, in turns of the
device: then only loops bound by the host tell anything). Of a block the lower quartile of the steps
counts, as what else a host does only ever adds to a step; the median is beside it. The interval is
Student's over the pairs' logarithms.

What remains of a profiler is in every launch, so loops of tiny layers show it, of 2, 20 and 100 ms;
loops that the device bounds, by its events, show whether kernels became slower. The last pair has
torch's own profiler instead, which stays attached: what the method shows where something remains.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from subprocess import Popen
from threading import Thread
from typing import Any, Final

from gpuwatch.tui.compare.intervals import student
from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.sources.deep_look import DeepLookLink
from gpuwatch.tui.sources.deep_report import hello_of
from tests.gpu.scripts import line_of, send, started

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Shape:
    """A loop."""

    name: str
    layers: int
    how: str
    """Of `deep_loop`."""
    block_s: float
    settle_s: float
    window_s: float
    """About so long it lasts."""

    @property
    def turn_s(self) -> float:
        """About so long a pair takes."""
        return WARM_S + 2 * self.block_s + self.settle_s + self.window_s


WARM_S: Final = 0.2
LAUNCH_2: Final = Shape("launch-bound, 2 ms", 14, "eager", 0.8, 0.2, 0.8)
LAUNCH_20: Final = Shape("launch-bound, 20 ms", 140, "eager", 1.6, 0.3, 1.5)
LAUNCH_100: Final = Shape("launch-bound, 100 ms", 700, "eager", 2.5, 0.6, 4.0)
DEVICE_2: Final = Shape("GPU-bound, 2 ms", 2, "device", 0.8, 0.3, 1.0)
DEVICE_20: Final = Shape("GPU-bound, 20 ms", 16, "device", 1.2, 0.3, 1.5)
DEVICE_100: Final = Shape("GPU-bound, 100 ms", 80, "device", 2.0, 0.5, 3.0)
SHAPES: Final = (LAUNCH_2, LAUNCH_20, LAUNCH_100, DEVICE_2, DEVICE_20, DEVICE_100)
TURNS: Final = (
    *(LAUNCH_2,) * 4, DEVICE_2, LAUNCH_20, *(LAUNCH_2,) * 3, LAUNCH_20, LAUNCH_100, DEVICE_20,
    *(LAUNCH_2,) * 3, LAUNCH_20, DEVICE_100, *(LAUNCH_2,) * 2, LAUNCH_20, LAUNCH_100, DEVICE_2,
)  # fmt: skip
"""Most wanted first: the time may end before they do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Logarithms of after over before, by the lower quartile and by the median of a block."""

    window: tuple[float, float]
    other: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ratio:
    """With its interval, which one pair alone does not have."""

    ratio: float
    low: float | None
    high: float | None

    def text(self) -> str:
        """ "1.002 (0.995 to 1.009)"."""
        if self.low is None or self.high is None:
            return f"{self.ratio:.4f} (one pair)"
        return f"{self.ratio:.4f} ({self.low:.4f} to {self.high:.4f})"


def ratio_of(logs: Sequence[float]) -> Ratio:
    """The geometric mean."""
    mean = fmean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(mean), None, None)
    half = student(0.5 + CONFIDENCE / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def logs_of(before: Sequence[int], after: Sequence[int]) -> tuple[float, float]:
    """By the lower quartiles, and by the medians. Raises ValueError for too few steps."""
    if min(len(before), len(after)) < 8:
        raise ValueError(f"{len(before)} steps before and {len(after)} after are too few")
    early, late = quantiles(before, n=4), quantiles(after, n=4)
    return math.log(late[0] / early[0]), math.log(late[1] / early[1])


def summary(pairs: Sequence[Pair]) -> dict[str, str]:
    """What all of one kind come to."""
    return {
        "window over control": ratio_of([one.window[0] - one.other[0] for one in pairs]).text(),
        "by medians": ratio_of([one.window[1] - one.other[1] for one in pairs]).text(),
        "window": ratio_of([one.window[0] for one in pairs]).text(),
        "control": ratio_of([one.other[0] for one in pairs]).text(),
    }


class Loops:
    """Of one shape: fresh processes in a row, on the GPUs in turn."""

    def __init__(self, shape: Shape, gpus: int, cores: Sequence[int]) -> None:
        self.shape = shape
        self.turns = 0
        self._gpus = gpus
        self._cores = cores
        self._ready: list[Popen[str]] = []

    def start(self, stack: ExitStack, out: Path, count: int) -> None:
        """So many, which warm up together."""
        for at in range(count):
            gpu = f"CUDA_VISIBLE_DEVICES={at % self._gpus}" if self._gpus else "GPUS=none"
            words = ["env", gpu, sys.executable, "-m", "tests.gpu.deep_loop"]
            words += [str(self.shape.layers), self.shape.how]
            log = out / f"pairs-{self.shape.how}-{self.shape.layers}-{at}.log"
            self._ready.append(stack.enter_context(started(words, log)))

    def wait(self) -> None:
        """Until all are ready. Those that have ended are left out."""
        waited, self._ready = self._ready, []
        for one in waited:
            try:
                line_of(one)
            except RuntimeError as error:
                print("pairs:", self.shape.name, "left one out:", error, flush=True)
            else:
                self._ready.append(one)

    @property
    def has_pair(self) -> bool:
        """Two that had no window are left."""
        return self.turns + 1 < len(self._ready)

    def turn(self, disturb: Callable[[Popen[str]], float | None]) -> tuple[Pair, dict[str, Any]]:
        """A pair: `disturb` does to the first what is to be measured; its pause in ms, or None."""
        both = self._ready[self.turns : self.turns + 2]
        for at, one in enumerate(both, self.turns):
            send(one, f"go {self._cores[at % 2]}" if self._cores else "go")
        self.turns += 1
        before = _block(both, WARM_S, self.shape.block_s)
        asked = Thread(target=_asked, args=(both[1].pid,))
        asked.start()
        pause_ms = disturb(both[0])
        asked.join()
        after = _block(both, self.shape.settle_s, self.shape.block_s)
        for one in both:
            send(one, "pause")
        pair = Pair(*(logs_of(early, late) for early, late in zip(before, after, strict=True)))
        return pair, {
            "loop": self.shape.name,
            "step_us": [round(median(rows) / 1e3, 1) for rows in before],
            "pause_ms": pause_ms,
            "window": pair.window,
            "other": pair.other,
            "deciles_us": [_deciles_us(rows) for rows in (*before, *after)],
        }


def _block(both: Sequence["Popen[str]"], settle_s: float, seconds: float) -> list[list[int]]:
    """The steps of each, ns, from so long after now on."""
    time.sleep(settle_s)
    _rows(both)
    time.sleep(seconds)
    return _rows(both)


def _rows(both: Iterable["Popen[str]"]) -> list[list[int]]:
    held = list(both)
    for one in held:
        send(one, "rows")
    return [json.loads(line_of(one)) for one in held]


def _deciles_us(rows: Sequence[int]) -> list[float]:
    return [round(one / 1e3, 1) for one in quantiles(rows, n=10)]


def _asked(pid: int) -> None:
    """A question to the other one, so that it was asked as well. It opens nothing."""
    with suppress(GpuwatchError), DeepLookLink(hello_of(pid), pid) as link:
        link.issued()


def window(process: "Popen[str]") -> float:
    """As `gpuwatch profile` opens it; its pauses in ms."""
    with DeepLookLink(hello_of(process.pid), process.pid) as link:
        answer, _ = link.profile(3, 15.0, True)
    return answer.pause_ns / 1e6


def torchs_own(process: "Popen[str]") -> None:
    """Torch's own profiler, which stays attached."""
    send(process, "profile")
    _rows([process])  # so that it is over


def cores_of(count: int) -> list[int]:
    """Two of so many that no core of the driver's or of a start shares; none of few. Threads of one
    core are neighbours, or half of all apart."""
    return [count // 4, count // 4 + 4] if count >= 16 else []


def pairs(out: Path, results: dict[str, Any], seconds: float) -> None:
    """As many as there is time for, and what they come to, a line each."""
    import torch

    began = time.monotonic()
    gpus = min(2, torch.cuda.device_count())
    allowed = sorted(os.sched_getaffinity(0))
    cores = [allowed[at] for at in cores_of(len(allowed))]
    apart = {at % len(allowed) for core in cores_of(len(allowed)) for at in near(core, allowed)}
    os.sched_setaffinity(0, {core for at, core in enumerate(allowed) if at not in apart})
    shapes = {shape: Loops(shape, gpus, cores) for shape in SHAPES if gpus or shape.how == "eager"}
    turns = [shape for shape in TURNS if shape in shapes]
    found: dict[Shape, list[Pair]] = {shape: [] for shape in shapes}
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        for shape, loops in shapes.items():
            wanted = turns.count(shape) + 1
            last = shape is LAUNCH_2  # a fresh one more, for torch's own profiler
            loops.start(stack, out, wanted + last if gpus else min(wanted, 3))
        for loops in shapes.values():
            loops.wait()
        print(f"pairs: ready after {time.monotonic() - began:.0f} s", flush=True)
        for shape in turns:
            left_s = seconds - (time.monotonic() - began) - LAUNCH_2.turn_s
            if left_s < shape.turn_s or not shapes[shape].has_pair:
                continue
            _one(shapes[shape], window, found[shape], rows)
        attached: list[Pair] = []
        if gpus and shapes[LAUNCH_2].has_pair:
            _one(shapes[LAUNCH_2], torchs_own, attached, rows)
    os.sched_setaffinity(0, set(allowed))
    said = {shape.name: summary(made) for shape, made in found.items() if made}
    if attached:
        said["torch's own profiler, 2 ms"] = summary(attached)
    for name, made in said.items():
        pairs_of = next((len(found[shape]) for shape in found if shape.name == name), 1)
        print(f"pairs: {name}, {pairs_of} pairs: {json.dumps(made)}", flush=True)
    results["pairs"] = {"summary": said, "rows": rows}


def near(core: int, allowed: Sequence[int]) -> tuple[int, int, int]:
    """Where it stands, and where its other thread may."""
    half = len(allowed) // 2
    return core, core ^ 1, (core + half) % len(allowed)


def _one(
    loops: Loops,
    disturb: Callable[["Popen[str]"], float | None],
    found: list[Pair],
    rows: list[dict[str, Any]],
) -> None:
    """A pair that fails is named and left out."""
    try:
        pair, row = loops.turn(disturb)
    except (GpuwatchError, ValueError, RuntimeError) as error:
        print("pair FAILED", loops.shape.name, str(error).replace("\n", " / "), flush=True)
        return
    found.append(pair)
    rows.append(row)
    own, other = math.exp(pair.window[0]), math.exp(pair.other[0])
    print(
        f"pair {loops.shape.name}: {row['step_us']} us, window {own:.4f}, control {other:.4f}",
        flush=True,
    )
