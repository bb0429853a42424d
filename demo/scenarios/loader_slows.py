"""A loader that is fast enough for 500 steps and three times as slow from then on.

Somebody else began to read from the same storage, say. The wait is a share of the step's own time,
measured first. `--without-cause` keeps it as it was. Only steps after the change are counted.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import SlowBatches, seconds_of, vectors
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

CHANGES_AT = 500
WORKERS = 2
SHARE = 0.6
"""Of a step's own time: what the workers need for a batch together, before the change."""
SLOWER = 3


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = options.sizes(tiny=(4, 8, 1), cpu=(256, 256, 6), gpu=(8_192, 2_048, 12))
    run.count_from(CHANGES_AT)
    ready = vectors(batch, width)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def learn(samples: torch.Tensor, classes: torch.Tensor) -> None:
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
            scores = net(samples.to(DEVICE, non_blocking=True))
        classes = classes.to(DEVICE, non_blocking=True)
        loss = torch.nn.functional.cross_entropy(scores.float(), classes)
        optimizer.zero_grad()
        loss.backward()

    wait_s = SHARE * WORKERS * seconds_of(lambda: learn(*ready[0]))
    slower_s = SLOWER * wait_s if options.cause else 0.0
    batches = SlowBatches(ready, wait_s, slower_from=CHANGES_AT, slower_s=slower_s)
    loader = DataLoader(batches, batch_size=None, num_workers=WORKERS, pin_memory=ON_GPU)
    for _epoch in itertools.count():
        for samples, classes in loader:
            learn(samples, classes)
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
