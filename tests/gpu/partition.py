"""Section `partition`: phases on the device's clock add up to the wall time of 200 steps.

The wall time is the host's perf_counter between two synchronisations of the script's own. The bar
is 1 % (the issue). "As shipped" has the steps that the probe's budget allows, scaled to all;
"every step" has marks on all of them.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from tests.gpu.partition_figures import partition
from tests.measuring.child import Child, children
from tests.measuring.claims import Claim, broken
from tests.measuring.watcher import watching

LOOPS: Final = (
    "GPU-bound",
    "launch-bound",
    "loader-bound",
    "hidden wait",
    "item each step",
    "accumulation",
)
BAR: Final = 0.01
STEPS: Final = 200
LIMIT_S: Final = 60.0


def claims() -> Iterator[Claim]:
    """Two rows a loop."""
    with children(
        [("-m", "tests.gpu.loops", "partition", loop, f"--steps={STEPS}") for loop in LOOPS]
    ) as started:
        for loop, child in zip(LOOPS, started, strict=True):
            try:
                yield from _rows(loop, child)
            except Exception as error:
                yield broken("partition", loop, error)


def _rows(loop: str, child: Child) -> Iterator[Claim]:
    with watching(child.pid) as watcher:
        child.send()
        seen = child.answer(LIMIT_S)
        watcher.wait_for(seen["every step"][1])
        child.bye()
    for kind in ("as shipped", "every step"):
        begin_ns, end_ns = seen[kind]
        found = partition(watcher.gpu_steps, begin_ns, end_ns, seen["steps"])
        measured = (
            f"{100 * found.error:+.3f} % of {found.wall_ns / 1e6:.0f} ms, "
            f"{found.reported} of {found.steps} steps, phases miss their step by {found.gap_ns} ns"
        )
        enough = found.reported == found.steps if kind == "every step" else found.reported > 0
        met = enough and abs(found.error) <= BAR and found.gap_ns == 0
        figures = {**asdict(found), "error": found.error, "faults": sorted(watcher.faults)}
        yield Claim(f"partition, {kind}", loop, measured, "1 %, 0 ns", met, figures)
