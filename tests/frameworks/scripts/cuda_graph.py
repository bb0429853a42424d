"""A whole step captured into a CUDA graph and replayed: nothing of it but its fetch is seen, so
`probe.step()` says where it ends."""

import probe

probe.install()

import torch
from known import BATCH, STEPS, WIDTH, Rows, lasting, print_truth
from torch.utils.data import DataLoader

WARM_UP = 3
CYCLES = 150_000_000
"""Of the device, 80 to 150 ms."""
net = torch.nn.Linear(WIDTH, WIDTH).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.ones(BATCH, WIDTH, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=False)
    torch.cuda._sleep(CYCLES)
    net(x).square().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(WARM_UP):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for batch in DataLoader(Rows(STEPS - WARM_UP - 1), batch_size=BATCH):
    with lasting("forward"):
        x.copy_(batch)
        graph.replay()
        torch.cuda.synchronize()
    probe.step()
print_truth(STEPS)
