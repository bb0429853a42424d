"""An optimizer that walks through many small parameters one by one (`foreach=False`).

`--without-cause` updates them all in a few kernels (`fused=True`).
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, vectors
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader


class Adapters(nn.Module):
    """A wide layer, and many small corrections that are stacked for one matrix product."""

    def __init__(self, width: int, adapters: int) -> None:
        super().__init__()
        self.body = nn.Linear(width, width)
        self.corrections = nn.ParameterList(
            nn.Parameter(0.01 * torch.randn(width)) for _ in range(adapters)
        )
        self.head = nn.Linear(width + adapters, 10)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        features = self.body(samples).relu()
        corrected = features @ torch.stack(list(self.corrections)).T
        scores: torch.Tensor = self.head(torch.cat([features, corrected], dim=1))
        return scores


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, adapters = (4, 8, 4) if options.tiny else (2_048, 1_024, 800)
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    net = Adapters(width, adapters).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False, fused=not options.cause)
    for _epoch in itertools.count():
        for samples, classes in loader:
            loss = nn.functional.cross_entropy(net(samples), classes)
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
