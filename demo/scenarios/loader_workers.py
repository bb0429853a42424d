"""Too few workers: two processes augment pictures for a ResNet that learns four times as fast.

The augmentation is real arithmetic (NumPy), so the workers' cores are busy.
`--without-cause` gives the loader twelve workers.
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


class AugmentedPictures(Dataset[tuple[torch.Tensor, int]]):
    """Noise, turned, rescaled and blurred anew each time it is read: some 3 ms of a core."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        random = np.random.default_rng(index)
        picture = random.standard_normal((3, self.side, self.side), dtype=np.float32)
        for _ in range(4):
            picture = picture + 0.5 * np.roll(picture, 1, axis=1) + 0.5 * np.roll(picture, 1, 2)
        picture = np.tanh(picture * random.uniform(0.5, 1.5))
        return torch.from_numpy(np.ascontiguousarray(np.rot90(picture, axes=(1, 2)))), index % 10


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = (4, 16, 4) if options.tiny else (96, 128, 64)
    workers = 1 if options.tiny else 2 if options.cause else 12
    loader = DataLoader(
        AugmentedPictures(side), batch, num_workers=workers, pin_memory=ON_GPU, drop_last=True
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
