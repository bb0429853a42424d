"""Two ranks that capture and compile: `python -m tests.gpu.ranks.graph_cases CASE probe|bare`.

Prints "ready", waits for a line, then prints the losses of all steps as a JSON line. With the probe
its entries may be read as often as anybody asks, so that captures and compilations meet readings.
"""

import json
import os
import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import probe
from tests.gpu.ranks.loops import joined, read_whenever_asked
from tests.gpu.shapes import Batches

WIDTH: Final = 256
STEPS: Final = 60
LAST_S: Final = 12.0
"""So long at least a case captures: readings come every half second."""
SLOW_S: Final = 9.0
"""Of one capture: longer than a probe waits for a mark before it looks at what stands."""

Losses = list[torch.Tensor]


class Parts:
    """The same net, optimizer and input each time; inputs differ by rank."""

    def __init__(self) -> None:
        self.device = joined()
        self.rank = dist.get_rank()
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 8))
        self.net = net.to(self.device)
        torch.manual_seed(self.rank + 1)
        self.x = torch.randn(64, WIDTH, device=self.device)
        self.batches: Any = iter(DataLoader(Batches((0.0,)), batch_size=1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3)

    def eager(self, net: Any) -> torch.Tensor:
        """A plain step."""
        next(self.batches)
        self.optimizer.zero_grad()
        loss: torch.Tensor = net(self.x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach().clone()

    def shared(self) -> Any:
        """The net under DistributedDataParallel."""
        return DistributedDataParallel(self.net)


def compiled(parts: Parts) -> Losses:
    """`torch.compile` around DistributedDataParallel, which cuts graphs at its buckets."""
    net = torch.compile(parts.shared())
    losses = []
    for _ in range(4 * STEPS):
        losses.append(parts.eager(net))
        sleep(LAST_S / 4 / STEPS)
    return losses


def _capture(parts: Parts, with_exchange: bool, hold_s: float = 0.0) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    total = torch.zeros(8, device=parts.device)
    with torch.cuda.graph(graph):
        total += parts.net(parts.x).sum(0).detach()
        if with_exchange:
            dist.all_reduce(total)
        until_s = monotonic() + hold_s
        while monotonic() < until_s:
            sleep(0.01)
    return graph


def _capturing(parts: Parts, on: Callable[[int], bool], with_exchange: bool) -> Losses:
    """Steps, and after each of them a new capture and its replay on those ranks; where the graph
    has an exchange, the others join it."""
    net = parts.shared()
    losses = [parts.eager(net)]
    for _ in range(STEPS):
        losses.append(parts.eager(net))
        if on(parts.rank):
            graph = _capture(parts, with_exchange)
            graph.replay()
        elif with_exchange:
            dist.all_reduce(torch.zeros(8, device=parts.device))
        sleep(LAST_S / STEPS)
    torch.cuda.synchronize()
    return losses


def one_captures(parts: Parts) -> Losses:
    """Rank 0 captures what has no collective."""
    return _capturing(parts, lambda rank: rank == 0, with_exchange=False)


def one_captures_exchange(parts: Parts) -> Losses:
    """Rank 0 captures a collective, which rank 1 joins outside a graph."""
    return _capturing(parts, lambda rank: rank == 0, with_exchange=True)


def both_capture_exchange(parts: Parts) -> Losses:
    """Both ranks capture it."""
    return _capturing(parts, lambda rank: True, with_exchange=True)


def slow_capture(parts: Parts) -> Losses:
    """Rank 0 captures for long while rank 1 stands in a collective: counters are read, and what
    has not ended with them."""
    net = parts.shared()
    losses = [parts.eager(net) for _ in range(STEPS)]
    torch.cuda.synchronize()
    if parts.rank == 0:
        _capture(parts, with_exchange=False, hold_s=SLOW_S).replay()
    losses += [parts.eager(net) for _ in range(STEPS)]
    return losses


def step_in_graph(parts: Parts) -> Losses:
    """Forward, backward and optimizer in one graph on each rank, gradients exchanged in it."""
    net = parts.net

    def step() -> torch.Tensor:
        parts.optimizer.zero_grad(set_to_none=False)
        loss: torch.Tensor = net(parts.x).square().mean()
        loss.backward()
        for one in net.parameters():
            dist.all_reduce(one.grad)
        parts.optimizer.step()
        return loss

    losses = []
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            losses.append(step().detach().clone())
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(STEPS):
        next(parts.batches)
        graph.replay()
        losses.append(loss.detach().clone())
        sleep(LAST_S / STEPS)
    return losses


CASES: Final[dict[str, Callable[[Parts], Losses]]] = {
    "compiled DDP": compiled,
    "one rank captures": one_captures,
    "one rank captures a collective": one_captures_exchange,
    "both ranks capture a collective": both_capture_exchange,
    "a step in a graph on both": step_in_graph,
    "a capture of 9 s on one rank": slow_capture,
}


def main() -> None:
    """One case."""
    case, how = sys.argv[1:3]
    if how == "probe":
        read_whenever_asked()
        probe.install()
    parts = Parts()
    print("ready", flush=True)
    sys.stdin.readline()
    losses = [float(one) for one in CASES[case](parts)]
    print(json.dumps({"losses": losses}), flush=True)
    sys.stdin.readline()
    os._exit(0)  # NCCL may wait for ranks that are gone


if __name__ == "__main__":
    main()
