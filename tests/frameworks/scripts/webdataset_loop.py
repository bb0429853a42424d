"""WebDataset from a tar: through a DataLoader, through its own WebLoader, or iterated itself and
wrapped (the argument)."""

import probe

probe.install()

import io
import sys

import torch
import webdataset
from known import BATCH, DATA_S, FOLDER, STEPS, WIDTH, Net, optimizer_of, print_truth, wait
from torch.utils.data import DataLoader

path = FOLDER / "rows.tar"
with webdataset.TarWriter(str(path)) as tar:
    for index in range(STEPS * BATCH):
        content = io.BytesIO()
        torch.save(torch.ones(WIDTH), content)
        tar.write({"__key__": f"{index:04}", "pth": content.getvalue()})


def loaded(row):
    wait("data", DATA_S / BATCH)
    return torch.load(io.BytesIO(row["pth"]))


dataset = webdataset.WebDataset(str(path), shardshuffle=False).map(loaded)
kind = sys.argv[1]
if kind == "DataLoader":
    loader = DataLoader(dataset, batch_size=BATCH)
elif kind == "WebLoader":
    loader = webdataset.WebLoader(dataset, batch_size=BATCH)
else:
    loader = probe.wrap(dataset.batched(BATCH, collation_fn=torch.stack))  # type: ignore[assignment]
model = Net()
optimizer = optimizer_of(model)
for batch in loader:
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
