"""The training side of `partition`: two windows of steps between two synchronisations each."""

from time import perf_counter_ns
from typing import Any, Final

from tests.gpu.every_step import stamp_every_step
from tests.gpu.shapes import Loop, synchronize

WARM_STEPS: Final = 20
"""Until the queue of launches is full, and the publisher has found the device."""
TRAILING_STEPS: Final = 10
"""Marks are read at the ends of later steps."""


def work(loop: Loop, steps: int, trace: str | None) -> dict[str, Any]:
    """As shipped, then with marks on every step."""
    for _ in range(WARM_STEPS):
        loop.step()
    shipped = _window(loop, steps)
    for _ in range(TRAILING_STEPS):  # so that the pause of the next line is not the window's
        loop.step()
    stamp_every_step()
    for _ in range(WARM_STEPS):
        loop.step()
    every = _window(loop, steps)
    for _ in range(TRAILING_STEPS):
        loop.step()
    return {"as shipped": shipped, "every step": every, "steps": steps}


def _window(loop: Loop, steps: int) -> tuple[int, int]:
    """(begin, end), perf_counter_ns, with an idle device at both."""
    synchronize()
    begin_ns = perf_counter_ns()
    for _ in range(steps):
        loop.step()
    synchronize()
    return begin_ns, perf_counter_ns()
