"""Matrices that miss the tensor cores' best kernels: layers 4,097 wide, in bf16.

`--without-cause` pads them to 4,160: a little more arithmetic, in less time.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, odd, padded, layers = (4, 17, 32, 2) if options.tiny else (16_384, 4_097, 4_160, 8)
    width = odd if options.cause else padded
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    for _epoch in itertools.count():
        for samples, classes in loader:
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
