"""A list of losses, each with its graph."""

import probe

probe.install()

import torch
from leaking_loop import batches, network

net = network()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
losses = []
for batch in batches():
    predicted = net(batch)  # LEAK
    loss = predicted.square().mean()  # LEAK
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(net(batch).mean())  # LEAK
