"""Nothing to fix: a ResNet in bf16 whose loader keeps up with it.

`--without-cause` changes nothing, since there is no cause.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Small pictures that lie decoded in memory; each is mirrored or not when it is read."""

    def __init__(self, count: int, side: int) -> None:
        self.pixels = torch.randint(256, (count, 3, side, side), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = self.pixels[index]
        return picture.flip(-1) if torch.rand(()) < 0.5 else picture, index % 10


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 16), gpu=(256, 96, 192))
    batch = options.scaled(batch)
    loader = DataLoader(
        Pictures(batch * 100, side),
        batch,
        shuffle=True,
        num_workers=options.sizes(tiny=1, cpu=1, gpu=6),
        persistent_workers=True,
        pin_memory=ON_GPU,
    )
    net = ResNet(width).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        for pixels, classes in loader:
            pictures = pixels.to(DEVICE, non_blocking=True).float().div(255)
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
