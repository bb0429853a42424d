"""The training side of `lag`: the script's own events at the same boundaries, and its own clock.

Host times of the boundaries are taken beneath the probe's hooks, just before it takes its own: an
event that is recorded into a full queue blocks for up to 28 ms, and that must not lie between.
"""

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

import torch

from tests.gpu.every_step import stamp_every_step
from tests.gpu.shapes import Loop, Observer

WARM_STEPS: Final = 15
"""Until the device is as far behind as it will be."""
TRAILING_STEPS: Final = 5
LOOKS: Final = 200
"""Of which the tightest counts."""

_beneath: dict[str, int] = {}
"""Boundary: when it was passed last, perf_counter_ns."""


def stamp_beneath() -> None:
    """Patch fetch and backward, and hook the optimizer, as somebody before the probe would."""

    def after(boundary: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def stamped(*args: Any, **kwargs: Any) -> Any:
            seen = original(*args, **kwargs)
            _beneath[boundary] = perf_counter_ns()
            return seen

        return stamped

    iterator: Any = sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter
    iterator.__next__ = after("data", iterator.__next__)
    graph: Any = sys.modules["torch.autograd.graph"]
    autograd: Any = torch.autograd
    graph._engine_run_backward = autograd._engine_run_backward = after(
        "backward", graph._engine_run_backward
    )
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_post_hook(
        lambda *_: _beneath.__setitem__("optimizer", perf_counter_ns())
    )


class Own(Observer):
    """Records an event beside each of the probe's."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, str, int, int, torch.cuda.Event]] = []
        """(step, boundary, host ns at the boundary, host ns at the record, event)."""
        self.number = 0

    def passed(self, boundary: str) -> None:
        event = torch.cuda.Event(enable_timing=True)
        own_ns = perf_counter_ns()
        event.record()
        # The forward ends where the backward begins, so there the boundary comes after the event.
        boundary_ns = perf_counter_ns() if boundary == "forward" else _beneath[boundary]
        self.marks.append((self.number, boundary, boundary_ns, own_ns, event))


class Truth:
    """The two clocks side by side, by record-and-synchronise on an idle device."""

    def __init__(self) -> None:
        torch.cuda.synchronize()
        self._anchor = torch.cuda.Event(enable_timing=True)
        self._anchor.record()
        torch.cuda.synchronize()

    def look(self) -> tuple[float, float, float]:
        """(host ns, device ns since the anchor, half of what is open)."""
        torch.cuda.synchronize()
        best = (0.0, 0.0, 1e18)
        for _ in range(LOOKS):
            event = torch.cuda.Event(enable_timing=True)
            before_ns = perf_counter_ns()
            event.record()
            event.synchronize()
            after_ns = perf_counter_ns()
            half_ns = (after_ns - before_ns) / 2
            if half_ns < best[2]:
                best = ((before_ns + after_ns) / 2, self.device_ns(event), half_ns)
        return best

    def device_ns(self, event: torch.cuda.Event) -> float:
        """Since the anchor; within 0.5 us for 8 s, since it is float32 milliseconds."""
        return 1e6 * float(self._anchor.elapsed_time(event))


def work(loop: Loop, steps: int, trace: str | None) -> dict[str, Any]:
    """Marks with their true device times, and the clocks before and after."""
    for _ in range(3):
        loop.step()
    stamp_every_step()
    truth = Truth()
    before = truth.look()
    for _ in range(WARM_STEPS):
        loop.step()
    own = Own()
    starts_ns = []
    for own.number in range(steps):
        starts_ns.append(perf_counter_ns())
        loop.step(own)
    after = truth.look()
    for _ in range(TRAILING_STEPS):
        loop.step()
    marks = [
        (step, boundary, boundary_ns, own_ns, truth.device_ns(event))
        for step, boundary, boundary_ns, own_ns, event in own.marks
    ]
    return {"starts_ns": starts_ns, "clocks": [before, after], "marks": marks}
