"""Too many workers: four for each core, and each multiplies matrices with two threads of its own.

A thread that waits for its twin waits for one that has no core, so all of them together do less
than a few would. `--without-cause` has one worker for two cores.
"""

import probe

probe.install()

import itertools
import os
from collections.abc import Sequence

# Before NumPy, which reads it when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "2"

import numpy as np
import torch
from machine import cores
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset


class Spectrograms(Dataset[tuple[torch.Tensor, int]]):
    """Pictures of noise that are decorrelated along both sides: two matrix products."""

    def __init__(self, side: int, step: int, seed: int) -> None:
        self.side = side
        self.step = step
        """From a pixel that is kept to the next."""
        self.seed = seed
        mixing = np.random.default_rng(seed).standard_normal((side, side)) / side**0.5
        self.mixing = mixing.astype(np.float32)

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        random = np.random.default_rng((self.seed, index))
        noise = random.standard_normal((self.side, self.side), dtype=np.float32)
        mixed = (self.mixing @ noise @ self.mixing)[:: self.step, :: self.step]
        return torch.from_numpy(mixed).expand(3, -1, -1), index % 10


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, step, width = options.sizes(
        tiny=(2, 16, 1, 4), cpu=(16, 256, 4, 4), gpu=(96, 128, 1, 64)
    )
    workers = 4 * cores() if options.cause else max(1, cores() // 2)
    loader = DataLoader(
        Spectrograms(side, step, options.seed),
        batch,
        num_workers=1 if options.tiny else workers,
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
