"""Texts that are padded to the longest that there may be: most of each batch is padding.

`--without-cause` pads each batch to its own longest text.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from nets import TextClassifier
from samples import padded, texts
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY = 30_000 if ON_GPU else 1_000


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, longest, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(16, 128, 64, 2), gpu=(32, 512, 768, 12)
    )
    loader: DataLoader[Any] = DataLoader(
        texts(64 * batch, longest, VOCABULARY),  # type: ignore[arg-type]
        batch,
        shuffle=True,
        num_workers=4 if ON_GPU else 0,
        persistent_workers=ON_GPU,
        pin_memory=ON_GPU,
        collate_fn=partial(padded, longest=longest if options.cause else 0),
    )
    net = TextClassifier(VOCABULARY, longest, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    for _epoch in itertools.count():
        for some in loader:
            ids, mask, labels = (part.to(DEVICE, non_blocking=True) for part in some.values())
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = nn.functional.cross_entropy(net(ids, mask), labels)
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
