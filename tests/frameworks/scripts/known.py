"""Waits of known length for a training script, reported at its end as they really were.

A sleep takes longer than it was asked to on a busy machine, so each is measured, on the clock that
the probe uses.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils.data import Dataset

DATA_S = 0.050
"""A batch."""
FORWARD_S = 0.080
BACKWARD_S = 0.090
OPTIMIZER_S = 0.070
STEPS = int(os.environ.get("KNOWN_STEPS", "10"))
BATCH = 2
WIDTH = 8
FOLDER = Path(os.environ["KNOWN_FOLDER"])

_waits: list[tuple[str, int, int]] = []


@contextmanager
def lasting(kind: str) -> Iterator[None]:
    """Remember from when to when something lasts."""
    began_ns = time.perf_counter_ns()
    yield
    _waits.append((kind, began_ns, time.perf_counter_ns()))


def wait(kind: str, seconds: float) -> None:
    """Sleep, and remember it."""
    with lasting(kind):
        time.sleep(seconds)


def print_truth(steps: int) -> None:
    """Write what was true of this process; `steps`: as the framework counts them."""
    truth = {"steps": steps, "waits": _waits}
    (FOLDER / f"{os.getpid()}.json").write_text(json.dumps(truth))


def here() -> None:
    """Say which process this is, where a framework starts it."""
    (FOLDER / f"{os.getpid()}.pid").touch()


def wait_until_read() -> None:
    """Wait until the test has received all, where a framework kills its processes at the end."""
    (FOLDER / "seen").read_text()


class Rows(Dataset):
    """Rows that take their time: a batch of them `DATA_S`."""

    def __init__(self, batches: int = STEPS, kind: str = "data") -> None:
        self._rows = torch.ones(batches * BATCH, WIDTH)
        self._kind = kind

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        wait(self._kind, DATA_S / BATCH)
        return self._rows[index]


@torch.library.custom_op("known::slow", mutates_args=())
def slow(x: torch.Tensor, kind: str) -> torch.Tensor:
    """A forward of `FORWARD_S`, which a compiler cannot look into."""
    wait(kind, FORWARD_S)
    return x.clone()


@torch.library.custom_op("known::slow_backward", mutates_args=())
def slow_backward(gradient: torch.Tensor) -> torch.Tensor:
    """Its backward, of `BACKWARD_S`."""
    wait("backward", BACKWARD_S)
    return gradient.clone()


slow.register_fake(lambda x, kind: torch.empty_like(x))
slow_backward.register_fake(lambda gradient: torch.empty_like(gradient))
slow.register_autograd(lambda context, gradient: (slow_backward(gradient), None))


class Net(torch.nn.Module):
    """One layer, and its waits. Gives the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of a batch, its loss."""
        kind = "forward" if self.training else "evaluation"
        return slow(self.layer(x), kind).square().mean()


class SlowSGD(torch.optim.SGD):
    """SGD whose step takes `OPTIMIZER_S` more."""

    def step(self, closure=None):
        """As SGD's."""
        loss = super().step(closure)
        wait("optimizer", OPTIMIZER_S)
        return loss


def optimizer_of(model: torch.nn.Module) -> SlowSGD:
    """Of all its parameters."""
    return SlowSGD(model.parameters(), lr=1e-3)
