"""A training loop of tiny or of large layers with the probe, for `tests.gpu.deep_pairs`.

    python -m tests.gpu.deep_loop LAYERS [eager|compiled|device]

eager and compiled: tiny layers, which the host bounds; a row is a step's time on the host. device:
layers of 8192 in bf16, which the device bounds; a row is a step's time between two CUDA events.

Lines of its input: `go [CPU]`, train (pinned to that core); `rows`, print the steps since the
`rows` before, ns, as a JSON line; `profile`, torch's own profiler over four steps, as its users
leave it; `pause`, until the next `go`. It ends with its input. A line with nothing is `go`.
"""

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

import torch

import probe

WARM_STEPS, WARM_S = 60, 3.0
"""So many, or so long."""
AHEAD = 3
"""Steps that the host of a loop bound by the device may be ahead."""


class Host:
    """Times of steps by the host's clock."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._began_ns = 0

    def began(self) -> None:
        """A step begins."""
        self._began_ns = time.perf_counter_ns()

    def ended(self) -> None:
        """It has ended."""
        self._rows.append(time.perf_counter_ns() - self._began_ns)

    def taken(self) -> list[int]:
        """Since the last time, ns."""
        rows, self._rows = self._rows, []
        return rows


class Device:
    """Times of steps by events of the device."""

    def __init__(self) -> None:
        self._ends: list[torch.cuda.Event] = []

    def began(self) -> None:
        """The step before has ended just now."""

    def ended(self) -> None:
        """Puts an event behind it, and waits for one of some steps ago."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._ends.append(event)
        if len(self._ends) > AHEAD:
            self._ends[-1 - AHEAD].synchronize()

    def taken(self) -> list[int]:
        """Since the last time, ns."""
        torch.cuda.synchronize()
        ends, self._ends = self._ends, self._ends[-1:]
        return [
            round(before.elapsed_time(after) * 1e6) for before, after in itertools.pairwise(ends)
        ]


def step_of(layers: int, how: str) -> Callable[[], None]:
    """One step of the loop."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if how == "device" and device.type == "cuda":
        width, rows, dtype = 8192, 2048, torch.bfloat16
    else:
        width, rows, dtype = 64, 16, torch.float32
    net = torch.nn.Sequential(
        *(torch.nn.Linear(width, width, device=device, dtype=dtype) for _ in range(layers))
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    run = torch.compile(net, mode="reduce-overhead") if how == "compiled" else net
    batch = torch.randn(rows, width, device=device, dtype=dtype)

    def step() -> None:
        optimizer.zero_grad()
        run(batch).square().mean().backward()
        optimizer.step()

    return step


def pin(cpus: set[int]) -> None:
    """Every thread of this process."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread), cpus)


def main() -> None:
    """Train as the lines say."""
    layers, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "eager"
    probe.install()
    torch.set_num_threads(1)
    anywhere = os.sched_getaffinity(0)
    step = step_of(layers, how)
    on_device = how == "device" and torch.cuda.is_available()
    times: Host | Device = Device() if on_device else Host()
    asked: SimpleQueue[str | None] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(line.strip())
        asked.put(None)

    def timed() -> None:
        times.began()
        step()
        times.ended()

    began = time.monotonic()
    for number in range(WARM_STEPS):
        timed()
        if number > 3 and time.monotonic() - began > WARM_S:
            break
    times.taken()
    print("ready", flush=True)
    threading.Thread(target=listen, daemon=True).start()
    trains = False
    while True:
        if trains:
            timed()
        line = asked.get() if not trains or not asked.empty() else ""
        if line is None:
            return
        if line.startswith("go") or not (line or trains):
            if cpu := line[2:].strip():
                pin({int(cpu)})
            trains = True
        elif line == "rows":
            print(json.dumps(times.taken()), flush=True)
        elif line == "pause":
            pin(anywhere)
            trains = False
        elif line == "profile":
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
                for _ in range(4):
                    step()


if __name__ == "__main__":
    main()
