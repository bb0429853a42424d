"""Lightning Fabric."""

import probe

probe.install()

from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
model = Net()
model, optimizer = fabric.setup(model, optimizer_of(model))
for batch in fabric.setup_dataloaders(DataLoader(Rows(), batch_size=BATCH)):
    loss = model(batch)
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
print_truth(STEPS)
