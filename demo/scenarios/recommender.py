"""Nothing to fix: a recommender whose embeddings are looked up in bags, and a wide net above them.

`--without-cause` changes nothing, since there is no cause.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import multilayer
from samples import ReadyBatches, tokens
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

CLASSES = 100


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, rows, width, wide, layers = options.sizes(
        tiny=(4, 100, 8, 8, 1), cpu=(256, 20_000, 32, 512, 3), gpu=(8_192, 50_000, 64, 4_096, 4)
    )
    loader = DataLoader(ReadyBatches(tokens(batch, 16, rows, DEVICE)), batch_size=None)
    table = nn.EmbeddingBag(rows, width)
    net = nn.Sequential(table, multilayer(width, wide, layers, CLASSES)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _epoch in itertools.count():
        for (bags,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(bags[:, :-1])
            loss = nn.functional.cross_entropy(scores.float(), bags[:, -1] % CLASSES)
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
