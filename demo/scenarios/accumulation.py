"""Nothing to fix: eight batches are accumulated for each step of the optimizer.

`--without-cause` changes nothing, since there is no cause: an optimizer that steps once in eight
batches is no bottleneck, and seven fetches without a step are no stall.
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
ACCUMULATED = 8
"""Batches for each step of the optimizer."""


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = options.sizes(
        tiny=(1, 16, 16, 1), cpu=(2, 64, 64, 1), gpu=(4, 1_024, 2_048, 6)
    )
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = GPT(VOCABULARY, length, width, layers, heads=16).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for number, (text,) in enumerate(loader, start=1):
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = net(text) / ACCUMULATED
            loss.backward()
            if number % ACCUMULATED:
                continue
            optimizer.step()
            optimizer.zero_grad()
            if run.finished(batch * ACCUMULATED):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
