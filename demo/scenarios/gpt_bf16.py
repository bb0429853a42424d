"""Nothing to fix: a GPT in bf16 whose matrix products keep the tensor cores busy.

`--without-cause` changes nothing, since there is no cause.
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

VOCABULARY = 16_384


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = (2, 16, 16, 1) if options.tiny else (16, 1_024, 4_096, 4)
    loader = DataLoader(
        ReadyBatches(tokens(batch, length, VOCABULARY)), batch_size=None, pin_memory=ON_GPU
    )
    net = GPT(VOCABULARY, length, width, layers, heads=8 if options.tiny else 32).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
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
