"""Launch-bound: an LSTMCell is called for each moment of a sequence, from Python.

`--without-cause` gives the whole sequence to `nn.LSTM`, which computes the same in a few kernels.
"""

import probe

probe.install()

import itertools
from collections.abc import Sequence

import torch
from samples import ReadyBatches, tokens
from scenario import DEVICE, Options, Report, Run, play
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY = 256


class Reader(nn.Module):
    """Reads text letter by letter and guesses the next one."""

    def __init__(self, width: int, step_by_step: bool) -> None:
        super().__init__()
        self.letters = nn.Embedding(VOCABULARY, width)
        self.cell = nn.LSTMCell(width, width) if step_by_step else None
        self.whole = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """The mean loss of guessing each letter [batch, length + 1] from those before it."""
        read = self.letters(text[:, :-1])
        if self.cell is None:
            states, _last = self.whole(read)
        else:
            state: tuple[torch.Tensor, torch.Tensor] | None = None
            moments = []
            for moment in read.unbind(dim=1):
                state = self.cell(moment, state)
                moments.append(state[0])
            states = torch.stack(moments, dim=1)
        scores = self.head(states)
        return nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width = (2, 6, 8) if options.tiny else (32, 128, 256)
    length = options.scaled(length)
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    net = Reader(width, step_by_step=options.cause).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _epoch in itertools.count():
        for (text,) in loader:
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
