"""Compute-bound: the batches lie ready, and the convolutions take the whole step.

The net keeps its first convolutions at full resolution, where they cost the most. `--fix` halves
the picture first, as most nets do.
"""

import probe

probe.install()

import itertools

import torch
from network import CLASSES, convolution
from photographs import PhotographsInMemory
from torch import nn
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 128 if ON_GPU else 8
WIDTH = 192 if ON_GPU else 16
"""Channels of each convolution."""
SIDE = 96
"""Pixels of a training picture."""


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    loader = DataLoader(
        PhotographsInMemory(SIDE),
        batch_size=BATCH,
        shuffle=True,
        num_workers=2 if ON_GPU else 1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = full_resolution_net(stem_stride=2 if options.fix else 1).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True).float().div(255))
            loss = nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if progress.finished(loss):
                return


def full_resolution_net(stem_stride: int) -> nn.Sequential:
    """Four convolutions that see every pixel, unless the first halves the picture."""
    return nn.Sequential(
        *convolution(3, WIDTH, stride=stem_stride),
        *convolution(WIDTH, WIDTH, stride=1),
        *convolution(WIDTH, WIDTH, stride=1),
        *convolution(WIDTH, WIDTH, stride=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTH, CLASSES),
    )


if __name__ == "__main__":
    run(train, __doc__)
