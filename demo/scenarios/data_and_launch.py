"""Two causes at once: a fifth of the step goes into launching, and less into loading.

The wait for data is a share of the step's time without it, measured first. `--without-cause`
replays forward and backward as CUDA graphs; `--without-cause input` has the batches ready.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import SlowBatches, seconds_of, vectors
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

WAIT_SHARE = 0.15
"""Of the whole step, the wait with it."""
CAUSES = ("launch", "input")


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 8, 3) if options.tiny else (2_048, 1_024, 60)
    ready = vectors(batch, width, device=DEVICE)
    net = multilayer(width, width, layers).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)

    def learn(samples: torch.Tensor, classes: torch.Tensor) -> None:
        loss = torch.nn.functional.cross_entropy(net(samples), classes)
        optimizer.zero_grad()
        loss.backward()

    # Before the graphs, so that the wait is the same with them.
    wait_s = seconds_of(lambda: learn(*ready[0])) * WAIT_SHARE / (1 - WAIT_SHARE)
    if ON_GPU and not options.has("launch"):
        # Puts a forward into the net that replays the graphs.
        torch.cuda.make_graphed_callables(net, (ready[0][0],))
    batches = SlowBatches(ready, wait_s if options.has("input") else 0.0)
    for _epoch in itertools.count():
        for samples, classes in DataLoader(batches, batch_size=None):
            learn(samples, classes)
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv, CAUSES)


if __name__ == "__main__":
    main()
