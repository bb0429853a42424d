"""The loops of the table: what each step waits for, computes and does at its end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import sleep
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, Dataset

WIDTH: Final = 4096
"""8 x 4096 with a batch of 8,192 in fp32 is 132 ms a step on an H200."""


@dataclass(frozen=True)
class Shape:
    """One training loop."""

    batch: int
    layers: int = 8
    width: int = WIDTH
    wait_ms: tuple[float, ...] = (0.0,)
    """Of the dataset, for one batch; repeated in turn."""
    workers: int = 0
    item: bool = False
    """`loss.item()` ends the step."""
    micro: int = 1
    """Batches a step: gradient accumulation."""
    bf16: bool = False


TINY: Final = Shape(batch=32, layers=100, width=64)
SHAPES: Final[dict[str, Shape]] = {
    # partition: about 33 ms of fp32 on the device
    "GPU-bound": Shape(batch=2048),
    "launch-bound": TINY,
    "loader-bound": Shape(batch=512, workers=2, wait_ms=(50.0,)),
    "hidden wait": Shape(batch=2048, wait_ms=(12.0,)),
    "item each step": Shape(batch=2048, item=True),
    "accumulation": Shape(batch=512, micro=4),
    # exposed: waits that the device feels in part
    "half hidden": Shape(batch=2048, wait_ms=(55.0,)),
    "wait and item": Shape(batch=2048, wait_ms=(15.0,), item=True),
    "wait, launch-bound": Shape(batch=32, layers=30, width=64, wait_ms=(10.0,)),
    "varying waits": Shape(batch=2048, wait_ms=(0.0, 70.0, 20.0, 45.0, 5.0, 110.0)),
    # lag: loops of which an H200's lags are known
    "fp32": Shape(batch=8192),
    "bf16": Shape(batch=8192, bf16=True),
    "fp32, item": Shape(batch=8192, item=True),
    "100 tiny layers": TINY,
    "fp32, 50 ms wait": Shape(batch=8192, wait_ms=(50.0,)),
}
LENGTH: Final = 100_000
"""Batches: no epoch ends in here."""


class Batches(Dataset[torch.Tensor]):
    """Sleeps, then says its index: inputs lie on the device already, so nothing is copied."""

    def __init__(self, wait_ms: tuple[float, ...]) -> None:
        self._wait_ms = wait_ms

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        wait_ms = self._wait_ms[index % len(self._wait_ms)]
        if wait_ms:
            sleep(wait_ms / 1e3)
        return torch.tensor([index])


class Observer:
    """What a measurement may hang into a step; by itself nothing."""

    def fetching(self) -> AbstractContextManager[Any]:
        """Around the fetch."""
        return nullcontext()

    def passed(self, boundary: str) -> None:
        """After "data", before the backward ("forward"), after "backward" and "optimizer"."""


SILENT: Final = Observer()


class Loop:
    """A shape that runs. The same on a CPU, with smaller layers, to try the scripts there."""

    def __init__(self, shape: Shape) -> None:
        torch.manual_seed(0)
        gpu = torch.cuda.is_available()
        width = shape.width if gpu else min(shape.width, 64)
        device = "cuda" if gpu else "cpu"
        self._shape = shape
        blocks = [
            layer
            for _ in range(shape.layers)
            for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())
        ]
        self._net = torch.nn.Sequential(*blocks).to(device)
        self._x = torch.randn(min(shape.batch, 32) if not gpu else shape.batch, width).to(device)
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=1e-4)
        self._autocast = torch.autocast(device, torch.bfloat16, enabled=shape.bf16)
        self._loader: DataLoader[Any] = DataLoader(
            Batches(shape.wait_ms), batch_size=1, num_workers=shape.workers
        )
        self._iterator: Iterator[Any] | None = None

    def step(self, observer: Observer = SILENT) -> None:
        """One optimizer step."""
        if self._iterator is None:
            self._iterator = iter(self._loader)
        loss = torch.zeros(())
        for _ in range(self._shape.micro):
            with observer.fetching():
                next(self._iterator)
            observer.passed("data")
            with self._autocast:
                loss = self._net(self._x).square().mean()
            observer.passed("forward")
            loss.backward()
            observer.passed("backward")
        self._optimizer.step()
        observer.passed("optimizer")
        self._optimizer.zero_grad()
        if self._shape.item:
            loss.item()


def synchronize() -> None:
    """Wait for the device: only at the ends of what is measured."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
