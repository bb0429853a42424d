"""Recompilation: lengths change from batch to batch, and each new one is compiled anew.

The limit of recompilations is raised, as a warning of torch suggests. `--without-cause` compiles
once, for any length (`dynamic=True`).
"""

import probe

probe.install()

import random
from collections.abc import Iterator, Sequence

import torch
from nets import multilayer
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader, IterableDataset

SAME_LENGTH = 6
"""Batches of one length that follow each other, as a sampler that groups by length yields them."""


class Sentences(IterableDataset[torch.Tensor]):
    """Batches of sentences of one length each: vectors [batch, length, width]."""

    def __init__(self, batch: int, longest: int, width: int) -> None:
        self.sentences = torch.randn(batch, longest, width, device=DEVICE)

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            length = random.randint(2, self.sentences.shape[1])
            for _ in range(SAME_LENGTH):
                yield self.sentences[:, :length].contiguous()


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    random.seed(options.seed)
    torch._dynamo.config.recompile_limit = 100_000
    torch._dynamo.config.accumulated_recompile_limit = 100_000
    batch, longest, width = options.sizes(tiny=(2, 30, 8), cpu=(4, 400, 128), gpu=(64, 2_000, 512))
    loader = DataLoader(Sentences(batch, longest, width), batch_size=None)
    net = multilayer(width, width, layers=3, classes=width).to(DEVICE)
    # A test has no use for half a minute of compiling, and without a GPU there may be no compiler.
    backend = options.sizes(tiny="eager", cpu="aot_eager", gpu="inductor")
    compiled = torch.compile(net, dynamic=not options.cause, backend=backend)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for sentences in loader:
        loss = (compiled(sentences) - sentences).square().mean()
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
