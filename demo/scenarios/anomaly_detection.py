"""`detect_anomaly` left on after a search for a NaN: it watches each operation, both ways.

The forward notes where each operation was called; the backward asks the GPU about each gradient.
`--without-cause` turns it off.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ViT
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    torch.autograd.set_detect_anomaly(options.cause)
    batch, side, width, layers = (2, 16, 16, 1) if options.tiny else (64, 128, 512, 12)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = ViT(side, patch=8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(net(images), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
