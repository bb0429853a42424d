"""Short epochs that start their workers anew each time: the first batch of each is late.

`--without-cause` keeps the workers from one epoch to the next (`persistent_workers=True`).
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, TensorDataset


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = (2, 16, 4) if options.tiny else (64, 64, 64)
    epoch = (2 if options.tiny else 20) * batch
    loader = DataLoader(
        TensorDataset(torch.randn(epoch, 3, side, side), torch.randint(10, (epoch,))),
        batch,
        shuffle=True,
        num_workers=1 if options.tiny else 8,
        persistent_workers=not options.cause,
        pin_memory=ON_GPU,
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
