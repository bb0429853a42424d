"""Workers that grow: the records are a Python list, and to read an object is to write its count.

What a worker shares with the others after the fork becomes its own copy, page by page.
`--without-cause` keeps the same records in one array, which is only read.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

WIDTH = 128
"""Numbers of a record: as Python objects they fill a page of memory."""


class Records(Dataset[torch.Tensor]):
    """Rows of numbers, as objects of their own or as one array."""

    def __init__(self, count: int, as_objects: bool) -> None:
        self.rows = torch.randn(count, WIDTH)
        self.objects = self.rows.tolist() if as_objects else None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index] if self.objects is None else torch.tensor(self.objects[index])


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, count, width, layers = options.sizes(
        tiny=(4, 100, 8, 1), cpu=(64, 150_000, 512, 4), gpu=(512, 600_000, 4_096, 8)
    )
    loader = DataLoader(
        Records(count, as_objects=options.cause),
        batch,
        shuffle=True,
        num_workers=options.sizes(tiny=1, cpu=2, gpu=4),
        persistent_workers=True,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    net = multilayer(WIDTH, width, layers, classes=WIDTH).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _epoch in itertools.count():
        for rows in loader:
            rows = rows.to(DEVICE, non_blocking=True)
            loss = (net(rows) - rows).square().mean()
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
