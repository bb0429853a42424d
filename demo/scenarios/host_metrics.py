"""Python between the steps: a confusion matrix is counted in plain loops after each step.

`--without-cause` leaves the metric out; the scores come to the host all the same.
"""

import probe

probe.install()

import itertools
from collections import Counter
from collections.abc import Sequence

import torch
from nets import ResNet
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader

CLASSES = 100


def count_confusions(
    confusions: Counter[tuple[int, int]], scores: list[list[float]], classes: list[int]
) -> None:
    """Count each pair of a true class and one of the five best guesses."""
    for row, wanted in zip(scores, classes, strict=True):
        best = sorted(range(CLASSES), key=row.__getitem__, reverse=True)[:5]
        for guess in best:
            confusions[wanted, guess] += 1


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width = options.sizes(tiny=(4, 16, 4), cpu=(1_024, 8, 4), gpu=(1_024, 64, 64))
    batch = options.scaled(batch)
    loader = DataLoader(
        ReadyBatches(pictures(batch, side, CLASSES, device=DEVICE)), batch_size=None
    )
    net = ResNet(width, classes=CLASSES).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    confusions: Counter[tuple[int, int]] = Counter()
    for _epoch in itertools.count():
        for images, classes in loader:
            scores = net(images)
            loss = torch.nn.functional.cross_entropy(scores, classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            on_the_host = scores.detach().cpu(), classes.cpu()
            if options.cause:
                count_confusions(confusions, on_the_host[0].tolist(), on_the_host[1].tolist())
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
