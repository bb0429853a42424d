"""Checkpoints too often: each tenth step waits until net and optimizer are in a file.

Without a GPU it is each second step. `--without-cause` writes one every 10,000 steps.
"""

import probe

probe.install()

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from nets import ViT
from samples import ReadyBatches, pictures
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over; the checkpoint goes with it."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-scenario-") as folder:
        train_into(Path(folder) / "checkpoint.pt", options, run)


def train_into(path: Path, options: Options, run: Run) -> None:
    """Train, and write checkpoints to `path`."""
    every = options.sizes(tiny=2, cpu=2, gpu=10) if options.cause else 10_000
    batch, side, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(2, 16, 512, 3), gpu=(64, 128, 768, 12)
    )
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = ViT(side, patch=8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    for _epoch in itertools.count():
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = torch.nn.functional.cross_entropy(net(images), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (run.steps + 1) % every == 0:
                torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
