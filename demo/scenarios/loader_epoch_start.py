"""Short epochs that start their workers anew each time: the first batch of each is late.

Without a GPU each worker reads annotations first; with one, starting eight takes long enough.
`--without-cause` keeps the workers from one epoch to the next (`persistent_workers=True`).
"""

import probe

probe.install()

import itertools
import json
from collections.abc import Sequence

import torch
from nets import ResNet
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, TensorDataset


class Annotations:
    """What a worker has to read before it can say what is in a picture."""

    def __init__(self, count: int) -> None:
        self.text = json.dumps([{"id": number, "box": [0.5] * 4} for number in range(count)])

    def read(self, _worker: int) -> None:
        """Read all of them."""
        json.loads(self.text)


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 16), gpu=(64, 64, 64))
    epoch = options.sizes(tiny=2, cpu=10, gpu=20) * batch
    loader = DataLoader(
        TensorDataset(torch.randn(epoch, 3, side, side), torch.randint(10, (epoch,))),
        batch,
        shuffle=True,
        num_workers=options.sizes(tiny=1, cpu=2, gpu=8),
        persistent_workers=not options.cause,
        worker_init_fn=Annotations(options.sizes(tiny=1, cpu=50_000, gpu=0)).read,
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
