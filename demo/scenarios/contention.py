"""Contention: another process multiplies matrices on the same GPU.

`--without-cause` has the GPU to itself.
"""

import probe

probe.install()

import itertools
import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Event

import torch
from nets import GPT
from samples import ReadyBatches, tokens
from scenario import DEVICE, Options, Report, Run, play
from torch.utils.data import DataLoader

VOCABULARY = 16_384
NEIGHBOUR_WITHIN_S = 60.0
"""Seconds within which the other process is expected to be at work."""


def multiply(size: int, busy: Event) -> None:
    """The neighbour: one product after another, and never more than a few ahead."""
    left = torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16)
    right = torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16)
    while True:
        for _ in range(20):
            left @ right
        # Reads one number, which waits for the products before it.
        (left @ right)[0, 0].item()
        busy.set()


def train(options: Options, run: Run) -> None:
    """Train until the run is over; the neighbour goes with it."""
    # A fork could not use the GPU.
    spawning = multiprocessing.get_context("spawn")
    busy = spawning.Event()
    neighbour = spawning.Process(
        target=multiply, args=(64 if options.tiny else 8_192, busy), daemon=True
    )
    if options.cause:
        neighbour.start()
        busy.wait(timeout=NEIGHBOUR_WITHIN_S)
    try:
        train_beside(options, run)
    finally:
        if options.cause:
            neighbour.terminate()
            neighbour.join()


def train_beside(options: Options, run: Run) -> None:
    """Train a GPT that would keep the GPU busy alone."""
    batch, length, width, layers = (2, 16, 16, 1) if options.tiny else (16, 1_024, 1_024, 8)
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = GPT(VOCABULARY, length, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
                loss = net(text)
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
