"""A loader that keeps up, and a host that waits for it all the same: a step is few kernels long.

The workers need three quarters of the GPU's time, and `.item()` comes every tenth step, so the host
is ahead and waits, while the GPU always has work. `--without-cause` has no wait: no faster.
"""

import probe

probe.install()

import itertools
import shutil
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import SlowBatches, seconds_of, tokens, vectors
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

WORKERS = 2
SHARE = 0.75
"""Of the GPU's time for a step: what the workers need for a batch together."""
LOOK_EVERY = 10
"""Steps from one look at the loss to the next."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 32, 2) if options.tiny else (8_192, 8_192, 4)
    table = vectors(batch, width, device=DEVICE)
    net = multilayer(width, width, layers).to(DEVICE)
    compiles = ON_GPU and not options.tiny and shutil.which("cc") is not None
    learnt = torch.compile(net) if compiles else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)

    def learn(which: int) -> torch.Tensor:
        samples, classes = table[which]
        with torch.autocast(DEVICE.type, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(learnt(samples), classes)
        optimizer.zero_grad()
        loss.backward()
        return loss

    wait_s = SHARE * WORKERS * seconds_of(lambda: learn(0)) if options.cause else 0.0
    batches = SlowBatches(tokens(1, 1, len(table)), wait_s)
    loader = DataLoader(batches, batch_size=None, num_workers=WORKERS, pin_memory=ON_GPU)
    total = 0.0
    for _epoch in itertools.count():
        for (text,) in loader:
            loss = learn(int(text[0, 0]))
            optimizer.step()
            if run.steps % LOOK_EVERY == 0:
                total += loss.item()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
