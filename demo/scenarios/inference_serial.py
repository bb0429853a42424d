"""Inference that waits for its pictures: the process that infers unpacks and scales them itself.

No gradients and no optimizer. `--without-cause` lets twelve workers do it. Without a GPU, and with
no cores to spare, it has each picture unpacked once.
"""

import probe

probe.install()

import itertools
import zlib
from collections.abc import Sequence

import torch
from nets import ViT
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset


class PackedPictures(Dataset[torch.Tensor]):
    """Pictures that lie packed in memory, twice as large as they are needed."""

    def __init__(self, side: int, stored: bool) -> None:
        self.side = side
        pixels = torch.randint(64, (3, 2 * side, 2 * side), dtype=torch.uint8)
        self.packed = zlib.compress(pixels.numpy().tobytes())
        self.stored = self.unpacked() if stored else None

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, _index: int) -> torch.Tensor:
        return self.unpacked() if self.stored is None else self.stored

    def unpacked(self) -> torch.Tensor:
        """The picture [3, side, side], as floats."""
        pixels = torch.frombuffer(bytearray(zlib.decompress(self.packed)), dtype=torch.uint8)
        picture = pixels.view(1, 3, 2 * self.side, 2 * self.side).float().div(255)
        return torch.nn.functional.avg_pool2d(picture, 2)[0]


def train(options: Options, run: Run) -> None:
    """Infer until the run is over."""
    batch, side, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(16, 128, 64, 1), gpu=(64, 224, 512, 8)
    )
    batch = options.scaled(batch)
    stored, workers = options.sizes(tiny=(False, 1), cpu=(True, 0), gpu=(False, 12))
    loader = DataLoader(
        PackedPictures(side, stored=stored and not options.cause),
        batch,
        num_workers=0 if options.cause else workers,
        pin_memory=ON_GPU,
    )
    net = ViT(side, patch=options.sizes(tiny=8, cpu=16, gpu=8), width=width, layers=layers, heads=8)
    net = net.to(DEVICE).eval()
    found = torch.zeros(10, dtype=torch.int64, device=DEVICE)
    mixed = torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU)
    with torch.inference_mode(), mixed:
        for _epoch in itertools.count():
            for images in loader:
                guesses = net(images.to(DEVICE, non_blocking=True)).argmax(dim=1)
                found.scatter_add_(0, guesses, torch.ones_like(guesses))
                if run.finished(len(images)):
                    return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
