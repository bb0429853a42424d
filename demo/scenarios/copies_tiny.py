"""Many tiny copies: a batch of graphs comes as 600 small tensors, moved one by one.

`--without-cause` packs them in one tensor, moves that, and cuts it apart on the GPU.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

NODES = 24
"""Nodes of a graph."""


def moved(graphs: Sequence[torch.Tensor], one_by_one: bool) -> Sequence[torch.Tensor]:
    """The graphs' nodes on the device."""
    if one_by_one:
        return [graph.to(DEVICE) for graph in graphs]
    packed = torch.cat(list(graphs))
    if ON_GPU:
        packed = packed.pin_memory()
    together: Sequence[torch.Tensor] = packed.to(DEVICE, non_blocking=True).split(NODES)
    return together


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, width, layers = (4, 8, 1) if options.tiny else (600, 256, 4)
    ready = [tuple(torch.randn(NODES, width) for _ in range(batch)) for _ in range(4)]
    loader = DataLoader(ReadyBatches(ready), batch_size=None)
    net = multilayer(width, 16 if options.tiny else 1_024, layers, classes=width).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for _epoch in itertools.count():
        for graphs in loader:
            nodes = torch.stack(list(moved(graphs, one_by_one=options.cause)))
            loss = (net(nodes) - nodes.roll(1, dims=1)).square().mean()
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
