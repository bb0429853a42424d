"""`loss.item()` at each step of a GPU-bound loop: the host waits for the GPU, and loses nothing.

The next step's work is issued in far less time than it takes, so the GPU's pause after each wait is
about a hundredth of the step. `--without-cause` does not ask for the loss: no faster.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from nets import GPT
from samples import ReadyBatches, tokens
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader

VOCABULARY = 16_384


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = (2, 16, 16, 1) if options.tiny else (16, 1_024, 2_048, 6)
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = GPT(VOCABULARY, length, width, layers, heads=16).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    total = 0.0
    for _epoch in itertools.count():
        for (text,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = net(text)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if options.cause:
                total += loss.item()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
