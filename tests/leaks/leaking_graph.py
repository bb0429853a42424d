"""A running total that keeps every step's graph."""

import probe

probe.install()

import torch
from leaking_loop import DEVICE, batches, network

net = network()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
total = torch.zeros((), device=DEVICE)
for batch in batches():
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    checked = net(batch)  # LEAK
    total = total + checked.square().mean()  # LEAK
