"""What the probe costs a step on the host clock: `make bench`.

One process, one training loop; blocks of steps with the hooks in place and with torch as it was
alternate in random order (attach.md 6: the only method that a noisy machine does not spoil). The
cost is the median over pairs of the difference of block medians; the A/A row is the same sum over
two bare blocks and says how much of it is noise.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from time import perf_counter_ns
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

import probe
from probe import api
from probe.hooks import backward, checkpoint, dataloader, optimizer

HOOKS: tuple[Any, ...] = (dataloader, backward, optimizer, checkpoint)
BLOCK_STEPS = 250
"""About a turn of the publisher at the shortest step, so that its work falls into each block."""
WATCHED_BAR_US = 15.0
UNWATCHED_BAR_US = 5.0


@dataclass(frozen=True)
class Cost:
    """One row: medians over the pairs of blocks."""

    mode: str
    pairs: int
    step_us: float
    cost_us: float
    low_us: float
    """10th percentile of 200 bootstrap medians."""
    high_us: float
    ratio: float
    mean_cost_us: float
    """Median over pairs of the difference of block means: the publisher's thread included."""


class Loop:
    """A real training step that is as short as real ones get: what is added shows best."""

    def __init__(self, width: int) -> None:
        torch.manual_seed(0)
        rows = TensorDataset(torch.randn(64 * 100, width), torch.randn(64 * 100, 1))
        self._loader: DataLoader[Any] = DataLoader(rows, batch_size=64)
        self._batches = iter(self._loader)
        self._net = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
        )
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=1e-4)

    def step(self) -> None:
        """Fetch, forward, backward, optimizer."""
        try:
            x, y = next(self._batches)
        except StopIteration:
            self._batches = iter(self._loader)
            x, y = next(self._batches)
        self._optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self._net(x), y)
        loss.backward()
        self._optimizer.step()

    def block_us(self) -> tuple[float, float]:
        """Median and mean step of one block, us. The publisher's bursts show in the mean alone."""
        times = []
        for _ in range(BLOCK_STEPS):
            start = perf_counter_ns()
            self.step()
            times.append(perf_counter_ns() - start)
        return statistics.median(times) / 1000, statistics.fmean(times) / 1000


def measure(mode: str, loop: Loop, pairs: int, hooked: bool) -> Cost:
    """`pairs` pairs of blocks, the second of each with hooks when `hooked`."""
    assert api._installed is not None
    recorder = api._installed.recorder
    order = random.Random(0)
    differences, ratios, bare_us, means = [], [], [], []
    for _ in range(pairs):
        us: dict[bool, tuple[float, float]] = {}
        for with_hooks in order.sample([False, True], 2):
            detach = [hook.attach(recorder) for hook in HOOKS] if with_hooks and hooked else []
            loop.step()
            us[with_hooks] = loop.block_us()
            for undo in detach:
                assert not undo()
        differences.append(us[True][0] - us[False][0])
        means.append(us[True][1] - us[False][1])
        ratios.append(us[True][0] / us[False][0])
        bare_us.append(us[False][0])
    medians = sorted(
        statistics.median(order.choices(differences, k=len(differences))) for _ in range(200)
    )
    return Cost(
        mode,
        pairs,
        statistics.median(bare_us),
        statistics.median(differences),
        medians[20],
        medians[180],
        statistics.median(ratios),
        statistics.median(means),
    )


def main() -> int:
    """Print the table; exit 1 where a bar is missed by more than the noise of the A/A row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--width", type=int, default=64, help="of the net: longer steps")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    probe.install()
    assert api._installed is not None
    for undo in api._installed._detach:
        undo()
    api._installed._detach.clear()
    loop = Loop(options.width)
    for _ in range(200):
        loop.step()
    rows = [
        measure("A/A (bare twice)", loop, options.pairs, hooked=False),
        measure("unwatched", loop, options.pairs, hooked=True),
    ]
    endpoint = api._installed._armed._identity.endpoint  # type: ignore[union-attr]
    assert endpoint is not None
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.subscriber", endpoint], stdout=subprocess.PIPE
    ) as monitor:
        assert monitor.stdout is not None
        monitor.stdout.readline()
        rows.append(measure("watched", loop, options.pairs, hooked=True))
        monitor.kill()
    probe.uninstall()
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(
            f"{'mode':18}{'step us':>10}{'cost us':>10}"
            f"{'90 % interval':>18}{'ratio':>9}{'mean us':>9}"
        )
        for row in rows:
            interval = f"{row.low_us:.1f} to {row.high_us:.1f}"
            print(
                f"{row.mode:18}{row.step_us:10.1f}{row.cost_us:10.2f}{interval:>18}"
                f"{row.ratio:9.4f}{row.mean_cost_us:9.2f}"
            )
    noise_us = abs(rows[0].cost_us)
    missed = rows[1].cost_us > UNWATCHED_BAR_US + noise_us
    missed |= rows[2].cost_us > WATCHED_BAR_US + noise_us
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
