"""Nothing wrong: the loader is ahead of the net, and the net takes nearly all of each step.

This is what a good run looks like, to compare the others with. `--fix` has nothing to fix.
"""

import probe

probe.install()

import itertools

import torch
from network import ConvNet
from photographs import PhotographsInMemory
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 256 if ON_GPU else 24
WIDTH = 128 if ON_GPU else 16
"""Channels of the first convolution."""
SIDE = 128
"""Pixels of a training picture."""


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    loader = DataLoader(
        PhotographsInMemory(SIDE),
        batch_size=BATCH,
        shuffle=True,
        num_workers=4 if ON_GPU else 1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=WIDTH).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if progress.finished(loss):
                return


if __name__ == "__main__":
    run(train, __doc__)
