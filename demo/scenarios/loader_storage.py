"""Slow storage: the workers of a ViT sleep in `read` until a busy file system answers.

The reads are real files, each with the delay of a network file system added, so the workers' cores
are idle. `--without-cause` reads the same files without the delay.
"""

import probe

probe.install()

import itertools
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from nets import ViT
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

FILES = 32
DELAY_S = 0.012
"""Seconds that the file system takes to answer one read."""


class PictureFiles(Dataset[tuple[torch.Tensor, int]]):
    """Raw pictures, one a file."""

    def __init__(self, folder: Path, side: int, seed: int, delay_s: float) -> None:
        self.paths = [folder / f"{number}.raw" for number in range(FILES)]
        self.side = side
        self.delay_s = delay_s
        pixels = random.Random(seed)
        for path in self.paths:
            path.write_bytes(pixels.randbytes(3 * side * side))

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        content = bytearray(self.read(self.paths[index % FILES]))
        picture = torch.frombuffer(content, dtype=torch.uint8)
        return picture.view(3, self.side, self.side), index % 10

    def read(self, path: Path) -> bytes:
        """The file's bytes, once the file system has answered."""
        if self.delay_s:
            time.sleep(self.delay_s)
        return path.read_bytes()


def train(options: Options, run: Run) -> None:
    """Train until the run is over; the files go with it."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-scenario-") as folder:
        train_on(Path(folder), options, run)


def train_on(folder: Path, options: Options, run: Run) -> None:
    """Train on files of this folder."""
    batch, side, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(16, 64, 64, 2), gpu=(64, 128, 384, 6)
    )
    batch = options.scaled(batch)
    files = PictureFiles(folder, side, options.seed, delay_s=DELAY_S if options.cause else 0.0)
    workers = options.sizes(tiny=1, cpu=2, gpu=6)
    loader = DataLoader(files, batch, num_workers=workers, pin_memory=ON_GPU, drop_last=True)
    net = ViT(side, patch=8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    for _epoch in itertools.count():
        for pictures, classes in loader:
            pictures = pictures.to(DEVICE, non_blocking=True).float().div(255)
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(pictures)
            classes = classes.to(DEVICE, non_blocking=True)
            loss = torch.nn.functional.cross_entropy(scores.float(), classes)
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
