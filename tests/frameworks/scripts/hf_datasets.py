"""Hugging Face datasets through a DataLoader, mapped on the fly or iterable; or iterated itself,
bare or wrapped (the argument)."""

import probe

probe.install()

import sys

import torch
from datasets import Dataset
from known import BATCH, DATA_S, STEPS, WIDTH, Net, optimizer_of, print_truth, wait
from torch.utils.data import DataLoader

kind = sys.argv[1]


def loaded(rows):
    wait("data", DATA_S / BATCH * len(rows["x"]))
    return {"x": torch.as_tensor(rows["x"])}


dataset = Dataset.from_dict({"x": [[1.0] * WIDTH] * (STEPS * BATCH)})
if kind == "map":
    loader = DataLoader(dataset.with_transform(loaded), batch_size=BATCH)
else:
    slow = dataset.to_iterable_dataset().map(loaded, batched=True, batch_size=BATCH)
    slow = slow.with_format("torch")
    loader = DataLoader(slow, batch_size=BATCH) if kind == "iterable" else slow.iter(BATCH)
    if kind == "wrapped":
        loader = probe.wrap(loader)  # type: ignore[assignment]
model = Net()
optimizer = optimizer_of(model)
for batch in loader:
    loss = model(batch["x"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
