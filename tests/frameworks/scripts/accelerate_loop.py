"""Accelerate, its loader sharded or dispatched over the ranks, bare or wrapped (the arguments)."""

import probe

probe.install()

import sys

from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from torch.utils.data import DataLoader

dispatched = sys.argv[1] == "dispatched"
accelerator = Accelerator(
    cpu=True,
    dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatched),
)
model = Net()
batches = STEPS * accelerator.num_processes
model, optimizer, loader = accelerator.prepare(
    model, optimizer_of(model), DataLoader(Rows(batches), batch_size=BATCH)
)
if sys.argv[2] == "wrapped":
    loader = probe.wrap(loader)
steps = 0
for batch in loader:
    loss = model(batch)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    steps += 1
print_truth(steps)
accelerator.end_training()
