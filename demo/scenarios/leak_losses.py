"""Memory that grows: a list keeps each validation loss, and with it the graph behind it.

The oldest go when thousands are kept, so that the scenario never fills the GPU, or the machine.
`--without-cause` computes the same losses under `no_grad`, which hang on no graph.
"""

import probe

probe.install()

import itertools
from collections import deque
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch.nn import functional
from torch.utils.data import DataLoader

HELD_OUT = 64
"""Samples of a validation: their activations are some 9 MB, which each loss keeps alive (0.6 MB
without a GPU)."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = options.sizes(
        tiny=(4, 16, 2), cpu=(1_024, 256, 4), gpu=(8_192, 4_096, 8)
    )
    most = options.sizes(tiny=8, cpu=4_000, gpu=8_000)
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    held_out = vectors(HELD_OUT, width, device=DEVICE)[0]
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    losses: deque[torch.Tensor] = deque(maxlen=most)
    for _epoch in itertools.count():
        for samples, classes in loader:
            loss = functional.cross_entropy(net(samples), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.set_grad_enabled(options.cause):
                losses.append(functional.cross_entropy(net(held_out[0]), held_out[1]))
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
