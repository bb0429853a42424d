"""torchdata's StatefulDataLoader."""

import probe

probe.install()

from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from torchdata.stateful_dataloader import StatefulDataLoader

model = Net()
optimizer = optimizer_of(model)
for batch in StatefulDataLoader(Rows(), batch_size=BATCH):
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
