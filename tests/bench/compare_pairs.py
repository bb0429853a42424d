"""`python -m tests.bench.compare_pairs [--pairs 20]`: does `gpuwatch compare` find what it should?

Pairs of equal real runs, and of runs of which one is 5 % slower, each recorded and compared. Most
of a step is a wait of known length, and the runs of a pair run at the same time: on a machine that
others use, what they do would differ more from minute to minute than what is looked for.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwatch.tui.compare.comparison import Row, compare, side
from gpuwatch.tui.model.snapshot import unseen
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.recording.whole_run import WholeRun, read_whole

WAIT_MS: Final = 30.0
SLOWER: Final = 1.05
SECONDS: Final = 6
TRAINS: Final = """
import sys, time
import probe; probe.install()
import torch
torch.set_num_threads(1)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
print("ready", flush=True)
for _ in range(10**6):
    for batch in torch.utils.data.DataLoader(torch.randn(4096, 8), batch_size=32):
        time.sleep(float(sys.argv[1]) / 1000)
        optimizer.zero_grad()
        net(batch).mean().backward()
        optimizer.step()
"""


def recorded(waits_ms: Sequence[float], folder: Path) -> list[WholeRun]:
    """A run of steps of each of these lengths, at the same time, recorded for SECONDS."""
    script = folder / "train.py"
    script.write_text(TRAINS)
    paths = [folder / f"{number}.gpuwatch" for number in range(len(waits_ms))]
    runs = [
        subprocess.Popen([sys.executable, str(script), str(wait)], stdout=subprocess.PIPE)
        for wait in waits_ms
    ]
    try:
        for run in runs:
            assert run.stdout is not None
            run.stdout.readline()
        recorders = [
            subprocess.Popen(
                [sys.executable, "-m", "gpuwatch", "record", str(run.pid), "--no-stacks",
                 "-o", str(path), "--duration", str(SECONDS)],
                stderr=subprocess.DEVNULL,
            )
            for run, path in zip(runs, paths, strict=True)
        ]  # fmt: skip
        assert [recorder.wait() for recorder in recorders] == [0] * len(runs)
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    return [_read(path) for path in paths]


def _read(path: Path) -> WholeRun:
    recording = Recording(path)
    try:
        return read_whole(recording)
    finally:
        recording.close()


def row_between(a: WholeRun, b: WholeRun) -> Row:
    """The step time's."""
    last = unseen(1, "train.py", 0, 0.0)
    row = compare(side("a", [a], last), side("b", [b], last)).step
    assert row is not None
    return row


def main() -> int:
    """Prints a line a pair and the two counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    pairs = parser.parse_args().pairs
    alarms = found = 0
    for number in range(pairs):
        with tempfile.TemporaryDirectory() as folder:
            waits_ms = (WAIT_MS, WAIT_MS, WAIT_MS * SLOWER)
            base, same, slow = recorded(waits_ms, Path(folder))
        equal, slower = row_between(base, same), row_between(base, slow)
        alarms += equal.found != "no change found"
        found += slower.found == "worse"
        print(
            f"pair {number}: equal {equal.change.relative:+.2%} {equal.found}; "
            f"slower {slower.change.relative:+.2%} {slower.found}",
            flush=True,
        )
    print(f"{alarms} of {pairs} equal pairs raised an alarm; {found} of {pairs} slower were found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
