"""The optimizer steps from a hook as soon as a gradient is there, inside the backward."""

import probe

probe.install()

from known import BACKWARD_S, BATCH, STEPS, Net, Rows, print_truth, wait
from torch.optim import SGD
from torch.utils.data import DataLoader

model = Net()
optimizers = {one: SGD([one], lr=1e-3) for one in model.parameters()}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()
    wait("backward", BACKWARD_S / 2)


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for batch in DataLoader(Rows(), batch_size=BATCH):
    model(batch).backward()
print_truth(STEPS)
