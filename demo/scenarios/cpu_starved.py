"""Launch-bound for want of a core: the process is bound to one that three neighbours use too.

With a core of its own the host keeps the GPU busy. `--without-cause` leaves it all its cores and
has no neighbours.
"""

import probe

probe.install()

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader

NEIGHBOURS = 3


def train(options: Options, run: Run) -> None:
    """Train until the run is over; the neighbours go with it."""
    if not options.cause:
        train_alone(options, run)
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    # They inherit the core.
    compute = (sys.executable, "-S", "-c", "while True: pass")
    neighbours = [subprocess.Popen(compute) for _ in range(NEIGHBOURS)]
    try:
        train_alone(options, run)
    finally:
        os.sched_setaffinity(0, cores)
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def train_alone(options: Options, run: Run) -> None:
    """Train a net whose kernels take about as long as launching them."""
    batch, width, layers = (4, 8, 3) if options.tiny else (4_096, 1_024, 60)
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    for _epoch in itertools.count():
        for samples, classes in loader:
            loss = torch.nn.functional.cross_entropy(net(samples), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
