"""Nothing to fix: an LSTM of cuDNN in bf16, with enough sequences in a batch to fill the GPU.

`--without-cause` changes nothing, since there is no cause.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, tokens
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY = 256


class Reader(nn.Module):
    """Reads text letter by letter and guesses the next one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(VOCABULARY, width)
        self.reader = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """The mean loss of guessing each letter [batch, length + 1] from those before it."""
        states, _last = self.reader(self.letters(text[:, :-1]))
        scores = self.head(states)
        return nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width = options.sizes(tiny=(2, 8, 8), cpu=(32, 32, 128), gpu=(1_024, 128, 2_048))
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = Reader(width).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
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
