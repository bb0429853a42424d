"""Nothing to fix: a transformer encoder in bf16 that fills in masked words, with clipped gradients.

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

VOCABULARY = 16_384 if ON_GPU else 256
MASKED = 0.15


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    batch, length, width, layers = options.sizes(
        tiny=(2, 16, 16, 1), cpu=(8, 48, 64, 2), gpu=(64, 512, 1_024, 24)
    )
    batch = options.scaled(batch)
    loader = DataLoader(ReadyBatches(tokens(batch, length, VOCABULARY, DEVICE)), batch_size=None)
    layer = nn.TransformerEncoderLayer(
        width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True
    )
    words = nn.Embedding(VOCABULARY, width)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    net = nn.Sequential(words, encoder, nn.Linear(width, VOCABULARY)).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for _epoch in itertools.count():
        for (text,) in loader:
            masked = text.masked_fill(torch.rand(text.shape, device=DEVICE) < MASKED, 0)
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=ON_GPU):
                scores = net(masked)
                loss = nn.functional.cross_entropy(scores.flatten(0, 1), text.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
            optimizer.step()
            if run.finished(batch):
                return


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
