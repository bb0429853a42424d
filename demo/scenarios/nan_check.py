"""A guard against NaN that asks the GPU about every parameter's gradient, one after the other.

`--without-cause` leaves the guard out.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import ViT
from samples import ReadyBatches, pictures
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader


def has_nan(net: nn.Module) -> bool:
    """Whether a gradient is no number: `bool` of a tensor waits for the GPU, each time."""
    gradients = [parameter.grad for parameter in net.parameters()]
    return any(bool(torch.isnan(grad).any()) for grad in gradients if grad is not None)


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, side, width, layers = (2, 16, 16, 1) if options.tiny else (64, 128, 512, 24)
    loader = DataLoader(ReadyBatches(pictures(batch, side, device=DEVICE)), batch_size=None)
    net = ViT(side, patch=8, width=width, layers=layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for images, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = nn.functional.cross_entropy(net(images), classes)
            optimizer.zero_grad()
            loss.backward()
            if not (options.cause and has_nan(net)):
                optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
