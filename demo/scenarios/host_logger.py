"""A logger that writes each step's line through to the disk and waits for its server's answer.

`--without-cause` logs every 1,000 steps.
"""

import probe

probe.install()

import itertools
import json
import os
import tempfile
import time
from collections.abc import Sequence
from typing import IO

import torch
from nets import GPT
from samples import ReadyBatches, tokens
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader

VOCABULARY = 8_192 if ON_GPU else 512
ANSWER_S = 0.03
"""Seconds until the metrics server has answered."""


def log(file: IO[str], step: int, loss: torch.Tensor) -> None:
    """Write a line, make sure that it is kept, and notify the server."""
    file.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
    file.flush()
    os.fsync(file.fileno())
    time.sleep(ANSWER_S)


def train(options: Options, run: Run) -> None:
    """Train until the run is over; the log goes with it."""
    every = 1 if options.cause else 1_000
    batch, length, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(8, 64, 128, 1), gpu=(32, 512, 768, 6)
    )
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = GPT(VOCABULARY, length, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    with tempfile.TemporaryFile("w") as file:
        for _epoch in itertools.count():
            for (text,) in loader:
                with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                    loss = net(text)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if run.steps % every == 0:
                    log(file, run.steps, loss)
                if run.finished(batch):
                    return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
