"""torch.compile of the model, of the whole step, or of the optimizer (the argument)."""

import probe

probe.install()

import sys

import torch
from known import BATCH, OPTIMIZER_S, STEPS, Net, Rows, optimizer_of, print_truth, wait
from torch.utils.data import DataLoader

what = sys.argv[1]
model = Net()
if what == "optimizer":
    # A sleep in a compiled function cannot be traced: it lies in an operator.
    @torch.library.custom_op("known::slow_update", mutates_args=())
    def slow_update(x: torch.Tensor) -> torch.Tensor:
        wait("optimizer", OPTIMIZER_S)
        return x.clone()

    slow_update.register_fake(lambda x: torch.empty_like(x))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    first = next(model.parameters())

    @torch.compile
    def update():
        optimizer.step()
        first.grad.copy_(slow_update(first.grad))  # type: ignore[union-attr]

else:
    optimizer = optimizer_of(model)
    update = optimizer.step


def step(batch):
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    update()
    return loss


if what == "model":
    model = torch.compile(model)  # type: ignore[assignment]
elif what == "step":
    step = torch.compile(step)
for batch in DataLoader(Rows(), batch_size=BATCH):
    step(batch)
print_truth(STEPS)
