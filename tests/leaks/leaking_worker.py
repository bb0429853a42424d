"""A dataset that remembers what it loaded, in its workers."""

import probe

probe.install()

import torch
from leaking_loop import Samples, batches, network


class Remembers(Samples):
    def __init__(self) -> None:
        self.loaded: list[list[int]] = []

    def __getitem__(self, index: int) -> torch.Tensor:
        self.loaded.append([index] * 256)  # LEAK
        return super().__getitem__(index)


if __name__ == "__main__":
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    for batch in batches(workers=1, dataset=Remembers()):
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
