"""A rank of a training whose steps are timed: `python -m tests.gpu.ranks.loops ddp|fsdp2`.

Prints "ready", then does what each line of stdin says: "rows N" sets the batch, "steps N" makes so
many steps and prints how long they took as a JSON line.
"""

import json
import os
import sys
from contextlib import nullcontext
from time import perf_counter_ns
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import probe
from gpuwatch.probe import collectives
from tests.gpu.shapes import Batches
from tests.measuring.one_thread import one_thread

WIDTH: Final = {"ddp": 4096, "fsdp2": 8192}
WARM_STEPS: Final = 10


def read_whenever_asked() -> None:
    """A probe reads entries seldom; what one reading costs is to be measured many times."""
    vars(collectives)["AGAIN_NS"] = 0
    vars(collectives)["MOST_PPM"] = 1_000_000_000


def joined() -> torch.device:
    """In the group, on this rank's device."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    one_thread()
    if torch.cuda.is_available() and torch.cuda.device_count() >= world:
        torch.cuda.set_device(rank)
        device = torch.device("cuda", rank)
        dist.init_process_group("nccl", device_id=device)
        return device
    dist.init_process_group("gloo")
    return torch.device("cpu")


class Loop:
    """Six large layers, bf16."""

    def __init__(self, kind: str) -> None:
        self.device = joined()
        self._gpu = self.device.type == "cuda"
        width = WIDTH[kind] if self._gpu else 256
        torch.manual_seed(0)
        layers = [nn.Linear(width, width) for _ in range(6)]
        net = nn.Sequential(*layers).to(self.device)
        self._net: Any
        if kind == "fsdp2":
            from torch.distributed.fsdp import fully_shard

            for layer in layers:
                fully_shard(layer)
            self._net = fully_shard(net)
        else:
            self._net = DistributedDataParallel(net)
        self._optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
        self._batches: Any = iter(DataLoader(Batches((0.0,)), batch_size=1))
        self._width = width
        self.rows(2048 if self._gpu else 64)

    def rows(self, rows: int) -> None:
        """Of a batch."""
        self._x = torch.randn(rows, self._width, device=self.device)

    def steps(self, count: int) -> int:
        """Make so many; how long they took until the device was done, ns."""
        begin_ns = perf_counter_ns()
        autocast = torch.autocast("cuda", torch.bfloat16) if self._gpu else nullcontext()
        for _ in range(count):
            next(self._batches)
            with autocast:
                loss = self._net(self._x).float().square().mean()
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad()
        if self._gpu:
            torch.cuda.synchronize()
        return perf_counter_ns() - begin_ns


def main() -> None:
    """Until stdin ends."""
    read_whenever_asked()
    probe.install()
    loop = Loop(sys.argv[1])
    loop.steps(WARM_STEPS)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "rows":
            loop.rows(int(number))
            print(json.dumps({"ns": loop.steps(WARM_STEPS)}), flush=True)
        elif word == "steps":
            print(json.dumps({"ns": loop.steps(int(number))}), flush=True)
        else:
            break
    os._exit(0)  # NCCL may wait for ranks that are gone


if __name__ == "__main__":
    main()
