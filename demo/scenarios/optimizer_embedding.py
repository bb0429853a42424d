"""A heavy optimizer: dense Adam rewrites a large table at each step, for the few rows in a batch.

`--without-cause` has sparse gradients, so that SparseAdam touches only those rows.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, tokens
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, rows, width = options.sizes(
        tiny=(4, 100, 8), cpu=(256, 400_000, 64), gpu=(8_192, 12_000_000, 128)
    )
    loader = DataLoader(ReadyBatches(tokens(batch, 16, rows, DEVICE)), batch_size=None)
    table = nn.EmbeddingBag(rows, width, sparse=not options.cause, device=DEVICE)
    head = nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 100)).to(DEVICE)
    dense = torch.optim.Adam(head.parameters(), lr=1e-3)
    optimizer: torch.optim.Optimizer
    if options.cause:
        optimizer = torch.optim.Adam(table.parameters(), lr=1e-3, fused=True)
    else:
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=1e-3)
    for _epoch in itertools.count():
        for (bags,) in loader:
            scores = head(table(bags[:, :-1]))
            loss = nn.functional.cross_entropy(scores, bags[:, -1] % 100)
            for each in (optimizer, dense):
                each.zero_grad()
            loss.backward()
            for each in (optimizer, dense):
                each.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
