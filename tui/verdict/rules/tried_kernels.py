"""cuDNN tries its kernels anew in each step, for its batches differ in size."""

from dataclasses import replace
from statistics import median
from typing import Final

from ...settings import FunctionTime, StepOperations
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import ms, percent
from ..idle_ledger import idle_ledger
from ..loader import loader_floor
from ..scoring import cause, speedup_of
from ..statistics import times, within_one, without_rows
from ..step_time import wall_of
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, traced
from ..window import StepWindow

CONVOLVES: Final = "convolution"
"""In PyTorch's names of such operations, the backward's too."""
TRIED_US: Final = 500.0
"""On the host, the mean of all operations of a function that convolves: launching one takes 20 to
60 us. Trying kernels for a length that had not come before, it was 2,300 and 34,000 on an H200."""
FEWEST_TRACED: Final = 2
"""Steps: one of the first alone tries kernels for sizes that come again."""
TYPICAL: Final = 0.5
"""A traced step that is hardly longer than the others stands for them: steps of sizes that had come
before are a hundredth as long. A guess."""
FEWEST_LIKE_IT: Final = 8
"""Steps, before that is asked."""
GIVES: Final = 0.9
"""Of what it takes, at the least: a ResNet over sounds of any length, 95 % of its step on an H200,
became 40x as fast without."""
BENCHMARK_OFF: Final = (
    "torch.backends.cudnn.benchmark = False: with it each size that has not come before is tried "
    "with all kernels"
)
FEW_SIZES: Final = "or pad batches to a few sizes, which are tried once each"


def tried_kernels(window: StepWindow) -> Finding | None:
    """By traced steps in which convolutions take the host far longer than launching them, while
    the GPU has nothing to do."""
    seen, ledger, settings = traced(window), idle_ledger(window), window.settings
    if seen is None or ledger is None or settings is None or not settings.cudnn_benchmark:
        return None
    if any(one.varies is False for one in window.loaders if not one.evaluation):
        return None
    slow = [one for one in seen.functions if _is_tried(one)]
    if not slow or not (seen.steps >= FEWEST_TRACED or _is_typical(window, seen)):
        return None
    part = within_one(sum(one.host_us for one in slow) / max(1, seen.host_us))
    share = times(without_rows(ledger.shares["launch"]), part)
    if share.mean < CONTRIBUTOR:
        return None
    most = max(slow, key=lambda one: one.host_us)
    each = ms(1e3 * most.host_us / most.operations)
    text = f"{most.operations:,} operations of {shown(most.place)}, most of it {most.operation}, "
    text += f"take the host {each} each"
    found = cause(
        "launch",
        "tried-kernels",
        share,
        f"cuDNN tries its kernels anew for {percent(share.mean)} of each step",
        (Evidence("torch.backends.cudnn.benchmark is on", "hook"), Evidence(text, "event", part)),
        (BENCHMARK_OFF, FEW_SIZES),
        loader_floor(window),
    )
    return replace(found, forecast=at_least(speedup_of(GIVES * share.mean, loader_floor(window))))


def _is_typical(window: StepWindow, seen: StepOperations) -> bool:
    """Most steps take about as long as the traced one."""
    if seen.wall_us is None or len(window.steps) < FEWEST_LIKE_IT:
        return False
    others_ns = median(wall_of(row) / row.count for row in window.steps)
    return others_ns >= TYPICAL * 1e3 * seen.wall_us


def _is_tried(one: FunctionTime) -> bool:
    """What convolves itself takes so long, by the device's clock, which waits meanwhile: a line
    that reads a result in the same function takes the host as long."""
    each_us = min(one.host_us, one.operation_us) / max(1, one.operations)
    return CONVOLVES in one.operation and each_us >= TRIED_US
