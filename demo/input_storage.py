"""Slow storage: the workers wait for the bytes of their files, and their cores are idle.

More cores would not help: the share answers each reader at 12 MB/s. `--fix` reads each file
from the share once and keeps its bytes (as a local copy or a page cache would).
"""

import probe

probe.install()

import itertools
from pathlib import Path

import torch
from network import ConvNet
from photographs import PhotographFiles, photographs
from slow_storage import NetworkShare
from torch.utils.data import DataLoader
from training_run import CORES, DEVICE, ON_GPU, Options, Progress, run

BATCH = 8
SIDE = 128
"""Pixels of a training picture; its file has 1280 x 960."""
WORKERS = min(16, CORES) if ON_GPU else 2


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    share = NetworkShare(latency_s=0.002, bytes_per_s=12e6)
    loader = DataLoader(
        PhotographFiles(SIDE, draft=True, read=Copy(share).read if options.fix else share.read),
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=24).to(DEVICE)
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


class Copy:
    """The files of a share, each read once, before training begins."""

    def __init__(self, share: NetworkShare) -> None:
        self._contents = {path: share.read(path) for path in photographs()}

    def read(self, path: Path) -> bytes:
        """The file's bytes, from memory."""
        return self._contents[path]


if __name__ == "__main__":
    run(train, __doc__)
