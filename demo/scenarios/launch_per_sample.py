"""Launch-bound: the loss of each sample of a batch is computed on its own, in a Python loop.

`--without-cause` computes the same loss for the whole batch at once.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch.nn import functional
from torch.utils.data import DataLoader

TEMPERATURE = 0.1


def contrast(features: torch.Tensor) -> torch.Tensor:
    """How badly each sample is separated from the others, sample by sample."""
    directions = functional.normalize(features, dim=1)
    losses = []
    for number, direction in enumerate(directions):
        likeness = (directions * direction).sum(dim=1) / TEMPERATURE
        losses.append(likeness.logsumexp(dim=0) - likeness[number])
    return torch.stack(losses).mean()


def contrast_at_once(features: torch.Tensor) -> torch.Tensor:
    """The same as a single matrix product."""
    directions = functional.normalize(features, dim=1)
    likeness = directions @ directions.T / TEMPERATURE
    return (likeness.logsumexp(dim=1) - likeness.diagonal()).mean()


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = (4, 16, 4) if options.tiny else (256, 64, 32)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = ResNet(width, classes=128).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        for images, _classes in loader:
            features = net(images)
            loss = contrast(features) if options.cause else contrast_at_once(features)
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
