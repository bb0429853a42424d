"""One tool around the same training loops, as its own manual recommends; a script for `peers`.

Speaks through files, since some tools start it behind launchers of their own: writes "ready" into
the directory PEER_FILES; for each "go.N" that it finds there it trains and writes "done.N"; leaves
at "bye".

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

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch

from tests.bench.cost.counters import RunQueue
from tests.bench.cost.loop import LaunchLoop
from tests.measuring.one_thread import one_thread

FILES: Final = Path(os.environ["PEER_FILES"])
TOOL: Final = os.environ["PEER_TOOL"]
WAIT_S: Final = 600.0
"""Without a word; it may have been stopped for most of that."""
LOOK_S: Final = 0.02

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


def trained(
    loop: LaunchLoop, around: Around, queue: RunQueue, settle_s: float, seconds: float
) -> list[int]:
    """Length of each step, what the tool does around it included and waits for a core left out,
    ns."""
    times = []
    settled_s = monotonic() + settle_s
    while monotonic() < settled_s:
        with around(loop.net):
            loop.step()
    until_s = monotonic() + seconds
    while monotonic() < until_s:
        queued_ns, begin_ns = queue.waited_ns(), perf_counter_ns()
        with around(loop.net):
            loop.step()
        took_ns = perf_counter_ns() - begin_ns
        times.append(took_ns + queued_ns - queue.waited_ns())
    return times


def next_turn(number: int) -> dict[str, Any] | None:
    """What is to be trained; None at the end."""
    path = FILES / f"go.{number}"
    end_s = monotonic() + WAIT_S
    while not path.exists():
        if monotonic() > end_s or (FILES / "bye").exists():
            return None
        sleep(LOOK_S)
    turn: dict[str, Any] = json.loads(path.read_text())
    return turn


def write_result(name: str, text: str) -> None:
    """Write a file that is whole when it can be seen."""
    part = FILES / f"{name}.part"
    part.write_text(text)
    part.rename(FILES / name)


def main() -> None:
    """All turns."""
    one_thread()
    layers: list[int] = json.loads(os.environ["PEER_LAYERS"])
    whole, around = begun()
    queue = RunQueue()
    with whole:
        loops = [LaunchLoop(count) for count in layers]
        for loop in loops:
            loop.times_ns(5)
        write_result("ready", str(os.getpid()))
        number = 0
        while (turn := next_turn(number)) is not None:
            loop = loops[turn["loop"]]
            times = trained(loop, around, queue, turn["settle_s"], turn["seconds"])
            write_result(f"done.{number}", json.dumps(times))
            number += 1


if __name__ == "__main__":
    main()
