"""torchdata.nodes, whose Loader is no DataLoader; bare or wrapped (the argument)."""

import probe

probe.install()

import sys

import torch
from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from torch.utils.data import RandomSampler
from torchdata.nodes import Batcher, Loader, Mapper, SamplerWrapper

rows = Rows()
fetched = Mapper(SamplerWrapper(RandomSampler(rows)), rows.__getitem__)
loader = Loader(Mapper(Batcher(fetched, BATCH), torch.stack))
if sys.argv[1] == "wrapped":
    loader = probe.wrap(loader)
model = Net()
optimizer = optimizer_of(model)
for batch in loader:
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
