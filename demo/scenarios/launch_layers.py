"""Launch-bound: a hundred tiny layers, each over before the host has issued the next.

`--without-cause` replays forward and backward as CUDA graphs: the same kernels, issued at once.
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
    batch, width, layers = (4, 8, 3) if options.tiny else (16, 64, 100)
    layers = options.scaled(layers)
    batches = vectors(batch, width, device=DEVICE)
    loader = DataLoader(ReadyBatches(batches), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    if ON_GPU and not options.cause:
        # Puts a forward into the net that replays the graphs.
        torch.cuda.make_graphed_callables(net, (batches[0][0],))
    for _epoch in itertools.count():
        for samples, classes in loader:
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
