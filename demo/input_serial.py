"""A serial loader: num_workers=0, so the training process decodes every JPEG itself.

Nothing is decoded while the net computes and nothing is computed while a JPEG is decoded: the
two add up. `--fix` decodes in workers, ahead of the net, and no more pixels than are needed.
"""

import probe

probe.install()

import itertools

import torch
from network import ConvNet
from photographs import PhotographFiles
from torch.utils.data import DataLoader
from training_run import CORES, DEVICE, ON_GPU, Options, Progress, run

BATCH = 12
SIDE = 128
"""Pixels of a training picture; its file has 1280 x 960."""


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    loader = DataLoader(
        PhotographFiles(SIDE, draft=options.fix),
        batch_size=BATCH,
        shuffle=True,
        num_workers=min(CORES, 16) if options.fix else 0,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=16).to(DEVICE)
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
