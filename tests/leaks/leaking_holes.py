"""Small blocks that stay beside large ones that go: segments that can never be given back."""

import probe

probe.install()

import torch
from leaking_loop import DEVICE, batches, network

MIB = 1024 * 1024
MOST = 4_000
net = network()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
kept = []
for step, batch in enumerate(batches()):
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    before = torch.empty(9 * MIB, dtype=torch.uint8, device=DEVICE)
    kept.append(torch.empty(MIB, dtype=torch.uint8, device=DEVICE))  # LEAK
    behind = torch.empty(9 * MIB, dtype=torch.uint8, device=DEVICE)
    del before, behind
    if step > MOST:
        break
