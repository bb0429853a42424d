"""DistributedDataParallel or FSDP2 (the argument), on gloo."""

import probe

probe.install()

import sys

import torch.distributed as dist
from known import BATCH, STEPS, Net, Rows, optimizer_of, print_truth
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
if sys.argv[1] == "ddp":
    model = DistributedDataParallel(Net())
else:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = fully_shard(Net(), mesh=mesh)  # type: ignore[assignment]
optimizer = optimizer_of(model)
rows = Rows(STEPS * dist.get_world_size())
for batch in DataLoader(rows, batch_size=BATCH, sampler=DistributedSampler(rows)):
    loss = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print_truth(STEPS)
dist.destroy_process_group()
