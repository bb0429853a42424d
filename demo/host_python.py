"""Python between the steps: metrics in plain Python loops, with the data ready and the net idle.

After each step the script estimates how sure its accuracy is, by drawing the batch anew
thousands of times, one prediction at a time. `--fix` draws them all in one tensor expression.
"""

import probe

probe.install()

import itertools
import random
import statistics

import torch
from network import ConvNet
from photographs import PhotographsInMemory
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 16
SIDE = 128
"""Pixels of a training picture."""
DRAWS = 8_000
"""Times that the batch is drawn anew, with replacement."""


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    loader = DataLoader(
        PhotographsInMemory(SIDE),
        batch_size=BATCH,
        shuffle=True,
        num_workers=1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=16).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)
    spread = spread_vectorised if options.fix else spread_in_python

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            spread(scores.argmax(dim=1) == labels.to(DEVICE))
            if progress.finished(loss):
                return


def spread_in_python(right: torch.Tensor) -> float:
    """The standard deviation of the accuracy, by the bootstrap, drawn one by one."""
    outcomes: list[int] = right.tolist()
    accuracies = []
    for _draw in range(DRAWS):
        hits = sum(outcomes[random.randrange(len(outcomes))] for _ in outcomes)
        accuracies.append(hits / len(outcomes))
    return statistics.pstdev(accuracies)


def spread_vectorised(right: torch.Tensor) -> torch.Tensor:
    """The same, drawn at once."""
    drawn = torch.randint(len(right), (DRAWS, len(right)), device=right.device)
    return right.float()[drawn].mean(dim=1).std(correction=0)


if __name__ == "__main__":
    run(train, __doc__)
