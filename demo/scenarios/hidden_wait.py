"""A wait that costs nothing: the main process loads for 30 ms while the GPU computes for 90.

The host runs ahead, so the GPU never runs dry and the loader holds nothing back, though the host
waits for it a good part of each step. `--without-cause` has the batches ready: no faster.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import SlowBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader

LOADING_S = 0.03


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 32, 2) if options.tiny else (32_768, 8_192, 4)
    # On the GPU already: a copy from pageable memory would make the host wait for the GPU.
    ready = vectors(batch, width, device=DEVICE)
    loader = DataLoader(SlowBatches(ready, LOADING_S if options.cause else 0.0), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
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
