"""Copies that fill the bus: pinned and asynchronous, but fp32, on the stream that computes.

Pinned memory frees the host; the GPU still waits for each copy. `--without-cause` keeps the batches
on the GPU.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, vectors
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width = (4, 16) if options.tiny else (16_384, 8_192)
    ready = vectors(batch, width, device="cpu" if options.cause else DEVICE)
    if ON_GPU and options.cause:
        ready = [tuple(part.pin_memory() for part in parts) for parts in ready]
    loader = DataLoader(ReadyBatches(ready), batch_size=None)
    net = multilayer(width, 16 if options.tiny else 512, layers=4).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _epoch in itertools.count():
        for samples, classes in loader:
            samples = samples.to(DEVICE, non_blocking=True)
            classes = classes.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(net(samples), classes)
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
