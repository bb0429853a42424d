"""Fragmentation: texts of ever new odd lengths, on a GPU with hardly more memory than they need.

What the allocator keeps of one batch fits the next one badly, so it gives memory back to the driver
and asks for other pieces. The memory is limited to a little more than the longest batch took.
`--without-cause` lets pieces grow (`expandable_segments:True`).
"""

import probe

probe.install()

import random
from collections.abc import Iterator, Sequence

import torch
from nets import GPT
from scenario import DEVICE, ON_GPU, Options, Report, Run, play
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY = 8_192
ROOM = 1.25
"""Memory that it may have, over what the longest batch takes alone."""


class Texts(IterableDataset[torch.Tensor]):
    """Batches of texts, each batch of a length of its own: [batch, length + 1]."""

    def __init__(self, batch: int, longest: int, seed: int) -> None:
        self.batch = batch
        self.longest = longest
        self.seed = seed

    def __iter__(self) -> Iterator[torch.Tensor]:
        lengths = random.Random(self.seed)
        while True:
            length = lengths.randrange(self.longest // 4 | 1, self.longest, 2)
            yield torch.randint(VOCABULARY, (self.batch, length + 1), device=DEVICE)


def train(options: Options, run: Run) -> None:
    """Train until the run is over."""
    if ON_GPU and not options.cause:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    batch, longest, width, layers = (2, 17, 16, 1) if options.tiny else (16, 2_047, 768, 8)
    net = GPT(VOCABULARY, longest, width, layers, heads=8).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    if ON_GPU:
        learn(net, optimizer, torch.randint(VOCABULARY, (batch, longest + 1), device=DEVICE))
        total = torch.cuda.get_device_properties(DEVICE).total_memory
        room = min(1.0, ROOM * torch.cuda.max_memory_allocated() / total)
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(room)
    for text in DataLoader(Texts(batch, longest, options.seed), batch_size=None):
        try:
            learn(net, optimizer, text)
        except torch.cuda.OutOfMemoryError:
            # As programs with such lengths do: this batch is left out.
            optimizer.zero_grad()
        if run.finished(batch):
            return


def learn(net: GPT, optimizer: torch.optim.Optimizer, text: torch.Tensor) -> None:
    """One step."""
    with torch.autocast(DEVICE.type, torch.bfloat16):
        loss = net(text)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(argv: Sequence[str] | None = None) -> Report:
    """One run with these options."""
    return play(train, __doc__, argv)


if __name__ == "__main__":
    main()
