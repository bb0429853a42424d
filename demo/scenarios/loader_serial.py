"""A serial loader: the process that trains a small GPT tokenises each text itself.

`--without-cause` lets eight workers tokenise. Without a GPU, and with no cores to spare, the texts
are tokenised once, before training.
"""

import probe

probe.install()

import itertools
import random
from collections.abc import Sequence

import torch
from nets import GPT
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 8_192 if ON_GPU else 512
STORED = 256
"""Texts that are tokenised before training, where that is the remedy."""


class TokenisedTexts(Dataset[torch.Tensor]):
    """Texts whose pairs of letters are merged in Python, as a byte-pair tokeniser does."""

    def __init__(self, length: int, cut: int, seed: int, stored: int) -> None:
        self.length = length
        """Tokens of a text."""
        self.cut = cut
        """Tokens of it that are learnt from."""
        self.seed = seed
        self.stored = [self.tokenised(number) for number in range(stored)]
        """Texts that are ready; without any, each is tokenised when it is read."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.stored[index % len(self.stored)] if self.stored else self.tokenised(index)

    def tokenised(self, index: int) -> torch.Tensor:
        """The numbers of one text's tokens [cut + 1]."""
        letters = random.Random(self.seed << 32 | index).choices(
            "abcdefghijklmnopqrstuvwxyz ", k=4 * self.length
        )
        pairs = [a + b for a, b in zip(letters[::2], letters[1::2], strict=True)]
        pieces = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        numbers = [sum(map(ord, piece)) * 31 % VOCABULARY for piece in pieces]
        return torch.tensor([*numbers, 0][: self.cut + 1])


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, cut, width, layers = options.sizes(
        tiny=(2, 16, 16, 16, 1), cpu=(32, 1_024, 32, 64, 1), gpu=(64, 512, 512, 512, 4)
    )
    batch = options.scaled(batch)
    stored, workers = options.sizes(tiny=(0, 1), cpu=(STORED, 0), gpu=(0, 8))
    loader = DataLoader(
        TokenisedTexts(length, cut, options.seed, stored=0 if options.cause else stored),
        batch,
        num_workers=0 if options.cause else workers,
        pin_memory=ON_GPU,
        drop_last=True,
    )
    net = GPT(VOCABULARY, cut, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    for _epoch in itertools.count():
        for tokens in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                loss = net(tokens.to(DEVICE, non_blocking=True))
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
