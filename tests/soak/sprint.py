"""What the probe's hooks cost a step, measured now and then inside the run.

The method of `make bench`: blocks of short steps with the hooks in place and with torch as it was,
in random order, in one process. The steps are on rows that lie in memory, one right
after the other, since a block at the run's own pace lasts half a second, and a shared machine does
not stay the same for so long.
"""

import random
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter_ns, thread_time_ns
from typing import Final

from tests.soak.hooks_out import Hooks

HOOKED, BARE, BARE_AGAIN = "hooked", "bare", "bare again"
ARMS: Final = (HOOKED, BARE, BARE_AGAIN)
BLOCK_STEPS: Final = 20
UNTIMED: Final = 1
"""Steps before each block, which pay for what was just changed."""
TRIPLES: Final = 8
STEPS: Final = TRIPLES * len(ARMS) * (UNTIMED + BLOCK_STEPS)
HOOKED_STEPS: Final = STEPS // len(ARMS)
SLOWEST: Final = BLOCK_STEPS // 10
"""Of a block; they are the machine's."""

Block = tuple[float, float, float]
"""Of a block's steps, us: the least CPU time, which others disturb least; the median of the wall
time; its mean without the slowest, which alone shows what only some steps pay, as marks on a
device."""
LEAST_CPU, MEDIAN, MEAN = range(3)


def orders(seed: int) -> Iterator[tuple[str, ...]]:
    """The order of each triple's blocks."""
    shuffled = random.Random(seed)
    for _ in range(TRIPLES):
        yield tuple(shuffled.sample(ARMS, len(ARMS)))


def sprint(step: Callable[[], None], hooks: Hooks, seed: int) -> list[dict[str, Block]]:
    """Every triple's blocks. The hooks are in place afterwards."""
    triples = []
    for order in orders(seed):
        triple = {}
        for arm in order:
            hooks.put(arm == HOOKED)
            for _ in range(UNTIMED):
                step()
            triple[arm] = _block(step)
        triples.append(triple)
    hooks.put(True)
    return triples


def _block(step: Callable[[], None]) -> Block:
    cpu_us, wall_us = [], []
    for _ in range(BLOCK_STEPS):
        cpu_ns, began_ns = thread_time_ns(), perf_counter_ns()
        step()
        wall_us.append((perf_counter_ns() - began_ns) / 1e3)
        cpu_us.append((thread_time_ns() - cpu_ns) / 1e3)
    mean = statistics.fmean(sorted(wall_us)[:-SLOWEST])
    return round(min(cpu_us), 2), round(statistics.median(wall_us), 2), round(mean, 2)
