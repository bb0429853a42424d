"""Batches that take five times as long as the computing: 50 ms of waiting for 10 ms of GPU.

One worker asks another machine for each batch and sleeps until it comes. `--without-cause` gets the
batches at once.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import GPT
from samples import SlowBatches, tokens
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

VOCABULARY = 8_192 if ON_GPU else 256
WAIT_S = 0.05


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(8, 64, 64, 1), gpu=(32, 512, 512, 4)
    )
    batches = SlowBatches(tokens(batch, length, VOCABULARY), WAIT_S if options.cause else 0.0)
    loader = DataLoader(batches, batch_size=None, num_workers=1, pin_memory=ON_GPU)
    net = GPT(VOCABULARY, length, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = net(text.to(DEVICE, non_blocking=True))
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
