"""A launcher of so many ranks: `python -m tests.bench.cost.ranks_job RANKS STEPS_S`.

Rank 0 trains; the others are forks that show a page and write the marks of so many steps a second
on it, four times a second as a probe does. Prints rank 0's pid; ends when stdin does.
"""

import os
import signal
import subprocess
import sys
import time
from array import array
from typing import Final

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page

TURN_S: Final = 0.25
PARTS: Final = (
    (marks.FETCH_ENTER, 0.00), (marks.FETCH_LEAVE, 0.05), (marks.BACKWARD_ENTER, 0.35),
    (marks.BACKWARD_LEAVE, 0.85), (marks.OPTIMIZER_ENTER, 0.86), (marks.OPTIMIZER_LEAVE, 0.95),
)  # fmt: skip
"""Of a step: a mark, and after which part of it."""


def show(rank: int, ranks: int, steps_s: float) -> None:
    """A page, as long as the launcher lives."""
    launcher = os.getppid()
    identity = Identity(None, "made up for a measurement")
    identity.rank = identity.local_rank = rank
    identity.world_size = ranks
    held = StatePage(identity.as_json(page.HELLO_BYTES))
    step_ns = round(1e9 / steps_s)
    at_ns, steps, written = time.perf_counter_ns(), 0, 0
    while os.getppid() == launcher:
        time.sleep(TURN_S)
        now_ns = time.perf_counter_ns()
        times, words = array("q"), array("q")
        while at_ns + step_ns <= now_ns:
            for kind, part in PARTS:
                times.append(at_ns + round(part * step_ns))
                words.append(marks.word_of(kind))
            at_ns, steps = at_ns + step_ns, steps + 1
        held.put(written, times, words)
        written += len(times)
        held.words[page.WORD_MARKS] = written
        held.words[page.WORD_STEPS] = steps
        held.words[page.WORD_HEARTBEAT] = now_ns
        held.words[page.WORD_OPEN] = page.pack_open(marks.OPTIMIZER_LEAVE, at_ns)
    os._exit(0)


def main() -> None:
    """Until nobody wants it any more."""
    ranks, steps_s = int(sys.argv[1]), float(sys.argv[2])
    children = []
    for rank in range(1, ranks):
        pid = os.fork()
        if pid == 0:
            show(rank, ranks, steps_s)
        children.append(pid)
    numbers = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(ranks)}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.cost.paced", f"{steps_s:g}", "0"],
        env={**os.environ, **numbers, "LOCAL_WORLD_SIZE": str(ranks)},
        stdin=subprocess.PIPE,
    ) as first:
        print(json_of(first.pid), flush=True)
        sys.stdin.read()
        first.kill()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def json_of(pid: int) -> str:
    """What the measurement reads."""
    return f'{{"pid": {pid}}}'


if __name__ == "__main__":
    main()
