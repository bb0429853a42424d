"""Gradient checkpointing, reentrant or not (the argument): the forward runs again in backward."""

import probe

probe.install()

import itertools
import sys

from known import BATCH, FORWARD_S, STEPS, Net, Rows, optimizer_of, print_truth, wait
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader


class Again(Net):
    """Its waits are a forward's and a backward's in turn."""

    def __init__(self):
        super().__init__()
        self._kinds = itertools.cycle(("forward", "backward"))

    def forward(self, x):
        wait(next(self._kinds), FORWARD_S)
        return self.layer(x)


again, last = Again(), Net()
optimizer = optimizer_of(again)
optimizer.add_param_group({"params": list(last.parameters())})
for batch in DataLoader(Rows(), batch_size=BATCH):
    # The reentrant kind needs an input with a gradient.
    batch.requires_grad_()
    loss = last(checkpoint(again, batch, use_reentrant=sys.argv[1] == "reentrant"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
