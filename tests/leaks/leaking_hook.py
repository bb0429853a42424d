"""A forward hook that keeps what it sees."""

import probe

probe.install()

import torch
from leaking_loop import batches, network

net = network()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
seen: list[torch.Tensor] = []


def watch(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> None:
    seen.append(output.detach().clone())  # LEAK


next(net.children()).register_forward_hook(watch)
for batch in batches():
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
