"""Implicit waits: each of a net's experts picks its samples with a boolean mask.

How many samples a mask picks is known on the GPU alone, so each pick waits for it.
`--without-cause` lets every expert see all samples and weighs what it says with the mask: more
arithmetic, and no wait.
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


class Experts(nn.Module):
    """Each sample goes to the expert that the router prefers."""

    def __init__(self, width: int, experts: int, masked: bool) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.masked = masked
        """Whether samples are picked with a boolean mask."""

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.router(samples).softmax(dim=-1).max(dim=-1)
        mixed = torch.zeros_like(samples)
        for number, expert in enumerate(self.experts):
            picked = chosen == number
            if self.masked:
                mixed[picked] = expert(samples[picked]) * weights[picked, None]
            else:
                mixed = mixed + expert(samples) * (weights * picked)[:, None]
        return samples + mixed


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, experts, layers = (8, 16, 2, 1) if options.tiny else (4_096, 512, 8, 6)
    loader = DataLoader(ReadyBatches(vectors(batch, width, device=DEVICE)), batch_size=None)
    net = nn.Sequential(
        *(Experts(width, experts, masked=options.cause) for _ in range(layers)),
        nn.Linear(width, 10),
    ).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
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
