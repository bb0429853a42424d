"""Checkpoints too often: every fifth step, training waits for a file to reach the disk.

The checkpoint holds the net, its optimizer, and a moving average of the net, and is written
through to the disk. `--fix` writes one every 1,000 steps.
"""

import probe

probe.install()

import copy
import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from network import ConvNet
from photographs import PhotographsInMemory
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 256 if ON_GPU else 8
WIDTH = 32
"""Channels of the first convolution."""
SIDE = 64
"""Pixels of a training picture."""


def train(options: Options) -> None:
    """Train until `options.steps` are done; the checkpoint goes when training ends."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-demo-checkpoint-") as folder:
        train_into(Path(folder) / "checkpoint.pt", options, every=1_000 if options.fix else 5)


def train_into(path: Path, options: Options, every: int) -> None:
    """Train, and write a checkpoint to `path` each `every` steps."""
    loader = DataLoader(
        PhotographsInMemory(SIDE),
        batch_size=BATCH,
        shuffle=True,
        num_workers=4 if ON_GPU else 1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=WIDTH, blocks=6).to(DEVICE)
    average = copy.deepcopy(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    progress = Progress(options.steps)

    for _epoch in itertools.count():
        for images, labels in loader:
            scores = network(images.to(DEVICE, non_blocking=True))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (progress.steps + 1) % every == 0:
                with torch.no_grad():
                    torch._foreach_lerp_(
                        list(average.parameters()), list(network.parameters()), 0.1
                    )
                save(path, network=network, average=average, optimizer=optimizer)
            if progress.finished(loss):
                return


def save(path: Path, **parts: Any) -> None:
    """Write the state of every part, and return when it is on the disk."""
    with path.open("wb") as file:
        torch.save({name: part.state_dict() for name, part in parts.items()}, file)
        os.fsync(file.fileno())


if __name__ == "__main__":
    run(train, __doc__)
