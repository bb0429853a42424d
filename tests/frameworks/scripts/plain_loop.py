"""PyTorch alone."""

import probe

probe.install()

from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from torch.utils.data import DataLoader

model = Net()
optimizer = optimizer_of(model)
for batch in DataLoader(Rows(), batch_size=BATCH):
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
