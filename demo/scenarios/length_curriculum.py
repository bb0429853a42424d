"""Memory that grows and is no leak: sequences get longer until they reach their full length.

`--without-cause` has full length from the start.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import GPT
from samples import ReadyBatches, tokens
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

VOCABULARY = 16_384 if ON_GPU else 256
LONGER_EVERY = 20
"""Steps until sequences get longer by an eighth of their full length."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, full, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(8, 128, 128, 1), gpu=(16, 1_024, 1_024, 8)
    )
    loader = DataLoader(ReadyBatches(tokens(batch, full, VOCABULARY, DEVICE)), batch_size=None)
    net = GPT(VOCABULARY, full, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            eighths = min(8, 1 + run.steps // LONGER_EVERY) if options.cause else 8
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = net(text[:, : eighths * full // 8 + 1])
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
