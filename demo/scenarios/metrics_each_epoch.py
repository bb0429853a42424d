"""Memory that grows and falls again: an epoch's features are kept for its metric, and then let go.

A sawtooth is no leak. `--without-cause` changes nothing, since there is no cause.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

EPOCH = 400
"""Steps; some 3 GB of features, or 0.2 GB without a GPU."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(2, 16, 4), cpu=(16, 64, 8), gpu=(256, 64, 96))
    features = options.sizes(tiny=4, cpu=8_192, gpu=8_192)
    ready = pictures(batch, side, classes=features, device=DEVICE)
    loader = DataLoader(ReadyBatches(ready, length=EPOCH), batch_size=None)
    net = ResNet(width, classes=features).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _epoch in itertools.count():
        seen: list[torch.Tensor] = []
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(images)
            loss = torch.nn.functional.cross_entropy(scores.float(), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(scores.detach().float())
            if run.finished(batch):
                return
        print(f"mean score {torch.stack([scores.mean() for scores in seen]).mean().item():.3f}")


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
