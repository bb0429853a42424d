"""What the screen costs: `python -m tests.bench.screen_cost`, all on pseudo-terminals of its own.

1. First paint: from the command until its first text is on the terminal, in turns with a bare
   Textual app; and the CPU time until then, which a busy machine does not stretch as much.
2. Watching a real training run of 50 steps a second with 4 workers, 100x30, 4 frames a second: the
   monitor's own CPU (py-spy's is its own budget and another process) and bytes to the terminal.
3. From a key to the frame that answers it, while 5,000 messages a second arrive.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.processes.pseudo_terminal import ROOT, PseudoTerminal

SIZE = (100, 30)
PAINTS = 12
KEYS = 40
WARM_S = 15.0
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""An installed program has its bytecode; the first, unmeasured start writes ours."""
TRAIN = """
import time
import probe; probe.install()
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 1_000_000
    def __getitem__(self, at):
        return torch.randn(64), torch.randn(1)

torch.set_num_threads(1)
net = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
print("ready", flush=True)
due = time.monotonic()
for x, y in DataLoader(Rows(), batch_size=16, num_workers=4):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    due += 0.02
    time.sleep(max(0.0, due - time.monotonic()))
"""


@contextmanager
def running(*command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that has printed "ready"."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == b"ready"
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def cpu_s(pid: int) -> float:
    """Of the process itself, since its start, to 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_cpu_s(pid: int) -> float:
    """Of the threads that it has now, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Paint(NamedTuple):
    """From the start of a program to its text on the terminal."""

    wall_s: float
    cpu_s: float


def first_paint(*arguments: str, text: str) -> Paint:
    """Of one start."""
    began = time.perf_counter()
    with PseudoTerminal(*arguments, size=SIZE, environ=COMPILED) as terminal:
        while not terminal.shows(text):
            terminal.read(0.005)
        return Paint(time.perf_counter() - began, threads_cpu_s(terminal.process.pid))


def first_paints(pid: int) -> tuple[list[Paint], list[Paint]]:
    """(ours, a bare app's), in turns."""
    pairs = [
        (
            first_paint("gpuwatch.tui.cli.main", "attach", str(pid), text="connecting"),
            first_paint("tests.bench.bare_app", text="first text"),
        )
        for _ in range(1 + PAINTS)
    ]
    return [ours for ours, _ in pairs[1:]], [theirs for _, theirs in pairs[1:]]


def paint_row(name: str, paints: Sequence[Paint]) -> str:
    """Median and least of the wall time, least CPU time: what disturbs only ever adds."""
    walls_ms = [1e3 * paint.wall_s for paint in paints]
    cpu_ms = 1e3 * min(paint.cpu_s for paint in paints)
    shown = f"{statistics.median(walls_ms):8.0f} ms, least {min(walls_ms):.0f}"
    return f"{name:28} {shown}, CPU {cpu_ms:.0f}"


def watching(pid: int, seconds: float, *options: str) -> tuple[float, float]:
    """(share of a core, bytes a second) of a screen that watches a process."""
    with PseudoTerminal(
        "gpuwatch.tui.cli.main", "attach", str(pid), *options, size=SIZE
    ) as terminal:
        began = time.monotonic()
        while time.monotonic() - began < WARM_S:
            terminal.read()
        began, before, cpu = time.monotonic(), len(terminal.output), cpu_s(terminal.process.pid)
        while time.monotonic() - began < seconds:
            terminal.read()
        passed = time.monotonic() - began
        used = cpu_s(terminal.process.pid) - cpu
        return used / passed, (len(terminal.output) - before) / passed


def keys_to_frames_s(pid: int) -> list[float]:
    """How long each of two views takes to appear after its key."""
    took = []
    with PseudoTerminal("gpuwatch.tui.cli.main", "attach", str(pid), size=SIZE) as terminal:
        terminal.read_until(lambda: terminal.shows("q quit") or terminal.shows("quit"))
        began = time.monotonic()
        while time.monotonic() - began < 5.0:
            terminal.read()
        for at in range(KEYS):
            key, text = ((b"3", b"[3 steps]"), (b"4", b"[4 memory]"))[at % 2]
            before = len(terminal.output)
            pressed = time.perf_counter()
            os.write(terminal.master, key)
            while text not in terminal.output[before:]:
                terminal.read(0.005)
            took.append(time.perf_counter() - pressed)
            terminal.read(0.1)
    return took


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of watching")
    options = parser.parse_args()
    with running("-c", TRAIN) as training:
        ours, bare = first_paints(training.pid)
        core, bytes_s = watching(training.pid, options.seconds)
    with running("-m", "tests.bench.flood") as flood:
        keys = keys_to_frames_s(flood.pid)
        flooded, _ = watching(flood.pid, options.seconds)
    print(paint_row(f"first paint, median of {PAINTS}", ours))
    print(paint_row("a bare Textual app", bare))
    print(f"watching 50 steps/s          {100 * core:8.1f} % of a core {bytes_s / 1e3:8.1f} kB/s")
    print(f"key to frame, median of {KEYS}   {1e3 * statistics.median(keys):8.0f} ms")
    print(f"              longest        {1e3 * max(keys):8.0f} ms")
    print(f"while 5,000 messages/s       {100 * flooded:8.1f} % of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
