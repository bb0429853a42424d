"""Copies from pageable memory: each step moves large fp32 pictures that the driver must stage.

`--without-cause` moves them as uint8 from pinned memory and makes floats of them on the GPU.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = (2, 16, 4) if options.tiny else (256, 256, 16)
    ready: list[tuple[torch.Tensor, ...]] = []
    for _ in range(4):
        pixels = torch.randint(256, (batch, 3, side, side), dtype=torch.uint8)
        if options.cause:
            pixels = pixels.float()
        elif ON_GPU:
            pixels = pixels.pin_memory()
        ready.append((pixels, torch.randint(10, (batch,), device=DEVICE)))
    loader = DataLoader(ReadyBatches(ready), batch_size=None)
    net = ResNet(width).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        for pixels, classes in loader:
            pictures = pixels.to(DEVICE, non_blocking=not options.cause).float().div(255)
            loss = torch.nn.functional.cross_entropy(net(pictures), classes)
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
