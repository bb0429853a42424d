"""Too few workers: two processes augment pictures for a ResNet that learns many times as fast.

The augmentation is real arithmetic (NumPy), so the workers' cores are busy.
`--without-cause` gives the loader twelve workers. Without a GPU it is one worker, and with no cores
to spare the pictures are augmented once, before training.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
STORED = 64
"""Pictures that are augmented before training, where that is the remedy."""


class AugmentedPictures(Dataset[tuple[torch.Tensor, int]]):
    """Noise, turned, rescaled and blurred anew each time it is read: some 3 ms of a core."""

    def __init__(self, side: int, passes: int, seed: int, stored: int) -> None:
        self.side = side
        self.passes = passes
        """Of the blur; each costs a core the same."""
        self.seed = seed
        self.stored = [self.augmented(number) for number in range(stored)]
        """Pictures that are ready; without any, each is augmented when it is read."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.stored:
            return self.stored[index % len(self.stored)], index % CLASSES
        return self.augmented(index), index % CLASSES

    def augmented(self, index: int) -> torch.Tensor:
        """The picture [3, side, side]."""
        random = np.random.default_rng((self.seed, index))
        picture = random.standard_normal((3, self.side, self.side), dtype=np.float32)
        for _ in range(self.passes):
            picture = picture + 0.5 * np.roll(picture, 1, axis=1) + 0.5 * np.roll(picture, 1, 2)
        picture = np.tanh(picture / 2**self.passes * random.uniform(0.5, 1.5))
        return torch.from_numpy(np.ascontiguousarray(np.rot90(picture, axes=(1, 2))))


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width, passes = options.sizes(
        tiny=(4, 16, 4, 4), cpu=(16, 64, 4, 60), gpu=(96, 128, 64, 4)
    )
    batch = options.scaled(batch)
    few, enough, stored = options.sizes(tiny=(1, 1, 4), cpu=(1, 1, STORED), gpu=(2, 12, 0))
    loader = DataLoader(
        AugmentedPictures(side, passes, options.seed, stored=0 if options.cause else stored),
        batch,
        num_workers=few if options.cause else enough,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    net = ResNet(width, classes=CLASSES).to(DEVICE)
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
