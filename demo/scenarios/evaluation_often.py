"""Evaluation too often: every 25 steps the ResNet is evaluated on 40 batches.

`--without-cause` evaluates every 10,000 steps.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

Batches = DataLoader[tuple[torch.Tensor, ...]]


def accuracy(net: nn.Module, held_out: Batches) -> float:
    """The share of the held-out pictures that the net puts in the right class, 0 to 1."""
    net.eval()
    right, seen = torch.zeros((), device=DEVICE), 0
    with torch.no_grad():
        for images, classes in held_out:
            right += (net(images).argmax(dim=1) == classes).sum()
            seen += len(classes)
    net.train()
    return right.item() / seen


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    every = (2 if options.tiny else 25) if options.cause else 10_000
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 16), gpu=(128, 128, 96))
    ready = pictures(batch, side, device=DEVICE)
    loader = DataLoader(ReadyBatches(ready), batch_size=None)
    held_out = DataLoader(ReadyBatches(ready, length=2 if options.tiny else 40), batch_size=None)
    net = ResNet(width).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        for images, classes in loader:
            loss = nn.functional.cross_entropy(net(images), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (run.steps + 1) % every == 0:
                accuracy(net, held_out)
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
