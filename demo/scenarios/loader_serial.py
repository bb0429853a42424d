"""A serial loader: the process that trains a small GPT tokenises each text itself.

`--without-cause` lets eight workers tokenise.
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

VOCABULARY = 8_192


class TokenisedTexts(Dataset[torch.Tensor]):
    """Texts whose pairs of letters are merged in Python, as a byte-pair tokeniser does."""

    def __init__(self, length: int) -> None:
        self.length = length
        """Tokens of a text."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        letters = random.Random(index).choices("abcdefghijklmnopqrstuvwxyz ", k=4 * self.length)
        pairs = [a + b for a, b in zip(letters[::2], letters[1::2], strict=True)]
        pieces = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        numbers = [sum(map(ord, piece)) * 31 % VOCABULARY for piece in pieces]
        return torch.tensor([*numbers, 0])


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = (2, 16, 16, 1) if options.tiny else (64, 512, 512, 4)
    workers = 0 if options.cause else 1 if options.tiny else 8
    loader = DataLoader(
        TokenisedTexts(length), batch, num_workers=workers, pin_memory=ON_GPU, drop_last=True
    )
    net = GPT(VOCABULARY, length, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    for _epoch in itertools.count():
        for tokens in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16):
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
