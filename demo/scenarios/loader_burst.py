"""Bursts: one sample in twelve batches takes 0.6 s, and the queue is too short to hide it.

On the mean the loader is fast enough. `--without-cause` has no slow samples.
"""

import probe

probe.install()

import itertools
import time
from collections.abc import Sequence

import torch
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

SLOW_S = 0.6
SLOW_EVERY = 12
"""Batches from one slow sample to the next."""


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Pictures at no cost, but for a sample whose archive has to be fetched first."""

    def __init__(self, side: int, seed: int, slow_every: int) -> None:
        self.picture = torch.randn(3, side, side)
        self.seed = seed
        self.slow_every = slow_every
        """Samples from one slow one to the next; 0: none is."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.slow_every and (index + 1 + self.seed) % self.slow_every == 0:
            time.sleep(SLOW_S)
        return self.picture, index % 10


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 16), gpu=(128, 128, 64))
    loader = DataLoader(
        Pictures(side, options.seed, slow_every=SLOW_EVERY * batch if options.cause else 0),
        batch,
        num_workers=options.sizes(tiny=1, cpu=2, gpu=4),
        prefetch_factor=2,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    net = ResNet(width).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        for pictures, classes in loader:
            scores = net(pictures.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, classes.to(DEVICE, non_blocking=True))
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
