"""A cache whose key never comes again."""

import probe

probe.install()

import torch
from leaking_loop import DEVICE, WIDTH, batches, network

net = network()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
cache: dict[tuple[int, int], torch.Tensor] = {}


def mask(length: int, step: int) -> torch.Tensor:
    key = (length, step)
    if key not in cache:
        cache[key] = torch.ones(length, length, device=DEVICE)  # LEAK
    return cache[key]


for step, batch in enumerate(batches()):
    loss = net(batch @ mask(WIDTH, step)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
