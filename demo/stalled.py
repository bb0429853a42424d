"""A run that stops: after a while the workers wait for a server that never answers.

The client asked without a timeout, so nothing fails and nothing moves: the training process waits
for a batch, the workers wait for the server. `--fix` asks with a timeout and reads the picture
from its copy on disk instead.
"""

import probe

probe.install()

import itertools
import socket
from multiprocessing import connection, parent_process
from pathlib import Path

import torch
from network import ConvNet
from photographs import PhotographFiles
from torch.utils.data import DataLoader
from training_run import DEVICE, ON_GPU, Options, Progress, run

BATCH = 8
SIDE = 96
"""Pixels of a training picture."""
WORKERS = 2
ANSWERED = 1_200
"""Requests of each worker that the server answers before it falls silent."""
TIMEOUT_S = 0.05


def train(options: Options) -> None:
    """Train until `options.steps` are done, or for ever."""
    server = PictureServer(timeout_s=TIMEOUT_S if options.fix else None)
    loader = DataLoader(
        PhotographFiles(SIDE, draft=True, read=server.read),
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    network = ConvNet(width=32).to(DEVICE)
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


class PictureServer:
    """The worker's side of a server that falls silent without closing the connection."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.asked = 0
        """Requests of this process."""
        self.trusted = True

    def read(self, path: Path) -> bytes:
        """The file's bytes, once the server has answered."""
        self.asked += 1
        if self.asked > ANSWERED and self.trusted:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                self.trusted = self.answer(ours)
        return path.read_bytes()

    def answer(self, server: socket.socket) -> bool:
        """Wait for the server's answer; False when it came too late."""
        # Waiting for the training process too lets a worker end with it: a demo leaves nobody.
        parent = parent_process()
        waited_for: list[socket.socket | int] = [server]
        if parent is not None:
            waited_for.append(parent.sentinel)
        return bool(connection.wait(waited_for, self.timeout_s))


if __name__ == "__main__":
    run(train, __doc__)
