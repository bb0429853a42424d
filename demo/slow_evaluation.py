"""Evaluation inside training, too often: every 20 steps the net stops to be evaluated.

An evaluation goes through 60 batches, so it holds some two fifths of the time.
`--fix` evaluates every 500 steps.
"""

import probe

probe.install()

import itertools

import torch
from network import ConvNet
from photographs import Example, PhotographsInMemory
from torch import nn
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 256 if ON_GPU else 24
WIDTH = 64 if ON_GPU else 16
"""Channels of the first convolution."""
SIDE = 96
"""Pixels of a picture."""
EVALUATION_BATCHES = 60


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
    held_out = DataLoader(
        PhotographsInMemory(SIDE, length=EVALUATION_BATCHES * BATCH), batch_size=BATCH
    )
    network = ConvNet(width=WIDTH).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)
    evaluate_every = 500 if options.fix else 20

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True))
            loss = nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (progress.steps + 1) % evaluate_every == 0:
                evaluate(network, held_out)
            if progress.finished(loss):
                return


def evaluate(network: nn.Module, held_out: DataLoader[Example]) -> torch.Tensor:
    """The accuracy on the held-out pictures, 0 to 1."""
    network.eval()
    right = torch.zeros((), device=DEVICE)
    with torch.no_grad():
        for images, labels in held_out:
            right += (network(images.to(DEVICE)).argmax(dim=1) == labels.to(DEVICE)).sum()
    network.train()
    return right / (EVALUATION_BATCHES * BATCH)


if __name__ == "__main__":
    run(train, __doc__)
