"""Memory-bound: 24 pointwise operations, each of which reads and writes a large tensor.

`--without-cause` has torch.compile fuse them into one kernel.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

OPERATIONS = 24


def colours(pictures: torch.Tensor) -> torch.Tensor:
    """A tone curve, written the way its formula reads: a few operations each time."""
    for number in range(OPERATIONS // 4):
        pictures = (pictures * 1.01 + 0.01 * number).clamp(-3, 3).tanh()
    return pictures


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side = (2, 16) if options.tiny else (512, 384)
    batch = options.scaled(batch)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 16, stride=16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    net = net.append(nn.Linear(32, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    # A test has no use for half a minute of compiling.
    backend = "eager" if options.tiny else "inductor"
    curve = colours if options.cause else torch.compile(colours, backend=backend)
    for _epoch in itertools.count():
        for images, classes in loader:
            loss = nn.functional.cross_entropy(net(curve(images)), classes)
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
