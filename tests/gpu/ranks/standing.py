"""A rank of a training that comes to a standstill: `python -m tests.gpu.ranks.standing CASE`.

Prints "ready" after its first steps and waits for a line; then trains on, and stands at a step of
its own: rank 1 says when, as a JSON line. The last rank has the cause.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import probe
from tests.gpu.ranks.loops import joined
from tests.gpu.shapes import Batches

WIDTH: Final = 1024
STEP_S: Final = 0.02
FIRST: Final = 30
STANDS_AT: Final = 400
"""Some 8 s after a monitor has come."""
FOR_EVER_S: Final = 1_000


def absent() -> None:
    """It waits elsewhere, in Python."""
    time.sleep(FOR_EVER_S)


def holds_the_lock() -> None:
    """The same in C, and no other thread of the process can run Python."""
    ctypes.PyDLL(None).sleep(FOR_EVER_S)


def dies() -> None:
    """Killed, as by the kernel for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def skips() -> None:
    """It goes on without the collective that the others are in."""


CASES: Final[dict[str, Callable[[], None]]] = {
    "absent": absent,
    "lock": holds_the_lock,
    "dies": dies,
    "skips": skips,
}


def main() -> None:
    """Until killed."""
    case = sys.argv[1]
    probe.install()
    device = joined()
    last = dist.get_rank() == dist.get_world_size() - 1
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    net = DistributedDataParallel(nn.Sequential(*layers).to(device))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    x = torch.randn(64, WIDTH, device=device)
    batches: Any = iter(DataLoader(Batches((1e3 * STEP_S,)), batch_size=1))
    for step, _ in enumerate(batches):
        if step == FIRST:
            print("ready", flush=True)
            sys.stdin.readline()
        if step == STANDS_AT:
            if last:
                print(json.dumps({"stands_ns": time.perf_counter_ns()}), flush=True)
                CASES[case]()
            elif case == "skips":
                averaged = torch.ones(3, device=device)
                dist.all_reduce(averaged)  # the metric that only this rank exchanges
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
