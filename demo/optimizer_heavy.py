"""A heavy optimizer: Adam rewrites a large embedding table at every step, for a few rows' sake.

The net guesses a word of Python's own library from the words before it. A batch touches some
hundreds of rows of the table; dense Adam reads and writes them all, and two moments for each.
`--fix` makes the gradient sparse, so that SparseAdam touches only those rows.
"""

import probe

probe.install()

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader
from training_run import CORES, DEVICE, ON_GPU, Options, Progress, run
from words import PythonWords

BATCH = 512
ROWS = 4_000_000 if ON_GPU else 100_000
"""Words the table has room for; words are hashed into it."""
COLUMNS = 64
GUESSES = 4_000
"""Classes: the next word, hashed."""


def train(options: Options) -> None:
    """Train until `options.steps` are done."""
    loader = DataLoader(
        PythonWords(ROWS, GUESSES),
        batch_size=BATCH,
        shuffle=True,
        num_workers=min(8, CORES) if ON_GPU else 1,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    table = nn.EmbeddingBag(ROWS, COLUMNS, sparse=options.fix).to(DEVICE)
    head = nn.Linear(COLUMNS, GUESSES).to(DEVICE)
    adam = torch.optim.SparseAdam if options.fix else torch.optim.Adam
    optimizers: list[torch.optim.Optimizer] = [
        adam(table.parameters(), lr=1e-3),
        torch.optim.Adam(head.parameters(), lr=1e-3),
    ]
    progress = Progress(options.steps)

    for _epoch in itertools.count():
        for contexts, words in loader:
            scores = head(table(contexts.to(DEVICE, non_blocking=True)))
            loss = nn.functional.cross_entropy(scores, words.to(DEVICE))
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            if progress.finished(loss):
                return


if __name__ == "__main__":
    run(train, __doc__)
