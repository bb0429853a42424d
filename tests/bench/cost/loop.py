"""A launch-bound training step of a chosen length: what is added on the host shows in full."""

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, Dataset

WIDTH: Final = 64
BATCH: Final = 32
FEW, MANY = 4, 60
"""Layers of the two loops that calibration times."""
WARM_STEPS: Final = 10
LENGTH: Final = 10**9
"""Batches: no epoch ends in here."""


class Numbers(Dataset[torch.Tensor]):
    """Says its index: inputs lie on the device already, so nothing is copied."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index])


class LaunchLoop:
    """Fetch, forward through so many tiny layers, backward, SGD. On CUDA where it is to be had."""

    def __init__(self, layers: int) -> None:
        torch.manual_seed(0)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        blocks = [
            layer
            for _ in range(layers)
            for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
        ]
        self.net = torch.nn.Sequential(*blocks).to(device)
        self._x = torch.randn(BATCH, WIDTH, device=device)
        self._optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        self._batches: Any = iter(DataLoader(Numbers(), batch_size=1))

    def step(self) -> int:
        """One step; a device follows within microseconds. Returns the time in the calls that have
        hooks, ns."""
        fetch_ns = perf_counter_ns()
        next(self._batches)
        fetched_ns = perf_counter_ns()
        loss = self.net(self._x).square().mean()
        backward_ns = perf_counter_ns()
        loss.backward()
        self._optimizer.step()
        stepped_ns = perf_counter_ns()
        self._optimizer.zero_grad()
        return fetched_ns - fetch_ns + stepped_ns - backward_ns

    def times_ns(self, steps: int) -> list[int]:
        """Length of each step on the host."""
        times = []
        for _ in range(steps):
            begin_ns = perf_counter_ns()
            self.step()
            times.append(perf_counter_ns() - begin_ns)
        return times


def layers_for(targets_ms: Sequence[float]) -> list[int]:
    """Layers that make a step about that long here."""
    few_ms, many_ms = (_step_ms(layers) for layers in (FEW, MANY))
    each_ms = max(1e-3, (many_ms - few_ms) / (MANY - FEW))
    return [max(1, round(FEW + (target_ms - few_ms) / each_ms)) for target_ms in targets_ms]


def _step_ms(layers: int) -> float:
    loop = LaunchLoop(layers)
    return min(loop.times_ns(4 * WARM_STEPS)[WARM_STEPS:]) / 1e6  # what disturbs only ever adds
