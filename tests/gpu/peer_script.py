"""One tool around the same training loops, as its own manual recommends; a script for `peers`.

Speaks through files, since some tools start it behind launchers of their own: writes "ready" into
the directory PEER_FILES, waits for "go", writes "result.json".

* traceml: `traceml run SCRIPT`, with `init()` and `trace_step(model)`, as its quickstart has it for
  a loop of one's own;
* gpuprof: `with gpuprof.profile(name):`, which instruments by itself;
* gpuwatch: `probe.install()`, watched;
* bare: nothing.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic, perf_counter_ns, sleep
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.gpu.launch_loop import LaunchLoop
from tests.gpu.shapes import one_thread

FILES: Final = Path(os.environ["PEER_FILES"])
TOOL: Final = os.environ["PEER_TOOL"]
WAIT_S: Final = 240.0
SETTLE_S: Final = 1.0
"""Samplers start, budgets find their level."""

Around = Callable[[torch.nn.Module], AbstractContextManager[Any]]


def begun() -> tuple[AbstractContextManager[Any], Around]:
    """What the tool wants around the run, and around each step."""
    if TOOL == "traceml":
        import traceml_ai as traceml

        traceml.init(mode="auto")
        return nullcontext(), traceml.trace_step
    if TOOL == "gpuprof":
        import gpuprof

        path = str(FILES / "gpuprof.db")
        return gpuprof.profile("table", summary=False, db_path=path), lambda _: nullcontext()
    if TOOL == "gpuwatch":
        import probe

        probe.install()
    return nullcontext(), lambda _: nullcontext()


def timed(loop: LaunchLoop, around: Around, steps: int) -> list[int]:
    """Length of each step, what the tool does around it included, ns."""
    times = []
    settled_s = monotonic() + SETTLE_S
    while monotonic() < settled_s:
        with around(loop.net):
            loop.step()
    for _ in range(steps):
        begin_ns = perf_counter_ns()
        with around(loop.net):
            loop.step()
        times.append(perf_counter_ns() - begin_ns)
    return times


def main() -> None:
    """All lengths of step, each so often."""
    one_thread()
    plan: list[tuple[int, int]] = json.loads(os.environ["PEER_PLAN"])
    whole, around = begun()
    with whole:
        LaunchLoop(4).times_ns(5)
        (FILES / "ready").write_text(str(os.getpid()))
        end_s = monotonic() + WAIT_S
        while not (FILES / "go").exists():
            if monotonic() > end_s:
                return
            sleep(0.05)
        times = [timed(LaunchLoop(layers), around, steps) for layers, steps in plan]
        written = FILES / "result.part"
        written.write_text(json.dumps(times))
        written.rename(FILES / "result.json")
        while not (FILES / "bye").exists() and monotonic() < end_s:
            sleep(0.05)


if __name__ == "__main__":
    main()
