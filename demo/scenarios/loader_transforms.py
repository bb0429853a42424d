"""Transforms too heavy: a worker for every core, and a U-Net that still waits for them.

More workers cannot help, since no core is free. `--without-cause` has the transforms done once,
before training (the loader then reads the stored result).
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from machine import cores
from nets import UNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

KEPT = 64
"""Pictures that are stored where the transforms are done once."""

Example = tuple[torch.Tensor, torch.Tensor]
"""A picture [3, side, side] and the mask to find [1, side, side]."""


class WarpedPictures(Dataset[Example]):
    """Pictures that are warped by an elastic field: some 25 ms of a core at 192 pixels."""

    def __init__(self, side: int, warps: int, seed: int, stored: bool) -> None:
        self.side = side
        self.warps = warps
        self.seed = seed
        self.stored = [self.warped(number) for number in range(KEPT)] if stored else None

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Example:
        return self.stored[index % KEPT] if self.stored else self.warped(index)

    def warped(self, index: int) -> Example:
        """Noise, warped several times."""
        random = np.random.default_rng((self.seed, index))
        picture = random.standard_normal((3, self.side, self.side), dtype=np.float32)
        rows, columns = np.mgrid[: self.side, : self.side]
        for _ in range(self.warps):
            shift = 3 * np.sin(random.standard_normal((2, self.side, self.side)) + rows / 9)
            row = (rows + shift[0]).astype(np.int64) % self.side
            column = (columns + shift[1]).astype(np.int64) % self.side
            picture = np.tanh(picture[:, row, column] + 0.1 * np.cos(columns / 7))
        image = torch.from_numpy(picture.astype(np.float32))
        return image, (image.mean(dim=0, keepdim=True) > 0).float()


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, warps, width, depth = options.sizes(
        tiny=(2, 16, 3, 4, 1), cpu=(8, 96, 12, 4, 2), gpu=(48, 192, 3, 32, 3)
    )
    loader = DataLoader(
        WarpedPictures(side, warps, options.seed, stored=not options.cause),
        batch,
        num_workers=1 if options.tiny else cores(),
        pin_memory=ON_GPU,
        drop_last=True,
    )
    net = UNet(width, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _epoch in itertools.count():
        for pictures, masks in loader:
            scores = net(pictures.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                scores, masks.to(DEVICE, non_blocking=True)
            )
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
