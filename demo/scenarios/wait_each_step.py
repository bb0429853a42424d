"""Two causes that hide each other: 30 ms of loading in the main process, and `.item()` each step.

Without the `.item()` the GPU would work while the host loads; without the loading, `.item()` would
cost nothing. `--without-cause` has the batches ready; `--without-cause sync` lets the host run
ahead. Either gives what both give.
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
CAUSES = ("input", "sync")


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 32, 2) if options.tiny else (32_768, 8_192, 4)
    # On the GPU already: a copy from pageable memory would make the host wait for the GPU.
    ready = vectors(batch, width, device=DEVICE)
    wait_s = LOADING_S if options.has("input") else 0.0
    loader = DataLoader(SlowBatches(ready, wait_s), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    total = 0.0
    for _epoch in itertools.count():
        for samples, classes in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(net(samples), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if options.has("sync"):
                total += loss.item()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv, CAUSES)


if __name__ == "__main__":
    main()
