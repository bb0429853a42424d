"""AdamW with states of 8 bits, from torchao or bitsandbytes (the argument)."""

import probe

probe.install()

import sys
import time

import torch
from known import BATCH, OPTIMIZER_S, STEPS, Net, Rows, lasting, print_truth
from torch.utils.data import DataLoader

if sys.argv[1] == "torchao":
    from torchao.optim import AdamW8bit
else:
    from bitsandbytes.optim import AdamW8bit


class Slow(AdamW8bit):
    def step(self, closure=None):
        # Their own part is not small, so it is in the truth.
        with lasting("optimizer"):
            loss = super().step(closure)
            time.sleep(OPTIMIZER_S)
        return loss


class Wide(Net):
    """With a layer large enough for states of 8 bits."""

    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(8, 4096)

    def forward(self, x):
        return super().forward(x) + self.wide(x).square().mean()


model = Wide()
optimizer = Slow(model.parameters())
for batch in DataLoader(Rows(), batch_size=BATCH):
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
