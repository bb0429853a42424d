"""Nothing to gain from fewer launches: thousands of medium kernels keep the launch queue full.

The host is busy all the time and looks like the limit; the GPU is a long way behind it.
`--without-cause` replays the same kernels as CUDA graphs: no faster.
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

TYPE = torch.bfloat16 if ON_GPU else torch.float32


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 8, 3) if options.tiny else (32_768, 1_024, 250)
    batches = [(rows.to(TYPE), classes) for rows, classes in vectors(batch, width, device=DEVICE)]
    loader = DataLoader(ReadyBatches(batches), batch_size=None)
    net = multilayer(width, width, layers).to(DEVICE, TYPE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
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
