"""Trainings that a careless probe breaks: `python -m tests.gpu.graph_cases CASE probe|bare`.

Prints "ready", waits for a line, then prints the losses and dynamo's counts as a JSON line. With
the probe, device marks are on every step, so that captures and compilations meet them.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # else 16 processes for each case

import torch
from torch.utils.data import DataLoader

import probe
from tests.gpu.every_step import stamp_every_step
from tests.gpu.shapes import Batches
from tests.measuring.one_thread import one_thread

WIDTH: Final = 128
BATCH: Final = 64
STEPS: Final = 24
DEVICE: Final = "cuda" if torch.cuda.is_available() else "cpu"

Losses = list[float]


def parts(capturable: bool = False) -> tuple[torch.nn.Module, torch.optim.Optimizer, torch.Tensor]:
    """The same net, optimizer and input each time."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 8)
    ).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=capturable)
    return net, optimizer, torch.randn(BATCH, WIDTH, device=DEVICE)


def batches() -> Any:
    """A loader's iterator: fetches begin the steps."""
    return iter(DataLoader(Batches((0.0,)), batch_size=1))


def train(step: Callable[[], torch.Tensor], steps: int = STEPS) -> Losses:
    """Fetch and step; the losses are read at the end, so that nothing waits before."""
    fetched = batches()
    losses = []
    for _ in range(steps):
        next(fetched)
        losses.append(step().detach().clone())
    return [float(loss) for loss in losses]


def eager(net: Any, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    """A plain step."""
    optimizer.zero_grad()
    loss: torch.Tensor = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def whole_step_capture() -> Losses:
    """Forward, backward and a capturable optimizer in one graph, captured inside a step."""
    net, optimizer, x = parts(capturable=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm = train(lambda: eager(net, optimizer, x), 5)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    fetched = batches()
    next(fetched)
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        loss: torch.Tensor = net(x).square().mean()
        loss.backward()
        optimizer.step()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return warm + train(replay)


def graphed_callables() -> Losses:
    """`torch.cuda.make_graphed_callables`: forward and backward are graphs, the rest is eager."""
    net, optimizer, x = parts()
    warm = train(lambda: eager(net, optimizer, x), 5)
    graphed = torch.cuda.make_graphed_callables(net, (x.clone(),))
    return warm + train(lambda: eager(graphed, optimizer, x))


def fullgraph() -> Losses:
    """`torch.compile(fullgraph=True)`: a graph break raises."""
    net, optimizer, x = parts()
    compiled = torch.compile(net, fullgraph=True)
    return train(lambda: eager(compiled, optimizer, x))


def reduce_overhead() -> Losses:
    """CUDA graphs by the compiler: it warms up, records and replays."""
    net, optimizer, x = parts()
    compiled = torch.compile(net, mode="reduce-overhead")
    return train(lambda: eager(compiled, optimizer, x))


def compiled_step() -> Losses:
    """The whole step in one compiled function, breaks and all."""
    net, optimizer, x = parts()
    step = torch.compile(lambda: eager(net, optimizer, x))
    return train(step)


def compiled_optimizer() -> Losses:
    """An eager net, and a compiled optimizer step."""
    net, optimizer, x = parts(capturable=DEVICE == "cuda")
    update = torch.compile(optimizer.step)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = net(x).square().mean()
        loss.backward()
        update()
        return loss

    return train(step)


def sync_debug() -> Losses:
    """Whatever waits for the device raises, in a thousand steps: the probe never does."""
    net, optimizer, x = parts()
    train(lambda: eager(net, optimizer, x), 3)
    fetched = batches()
    loss = torch.zeros(())
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(1000):
            next(fetched)
            loss = eager(net, optimizer, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return [float(loss)]


CASES: Final[dict[str, Callable[[], Losses]]] = {
    "whole-step capture": whole_step_capture,
    "make_graphed_callables": graphed_callables,
    "compile, fullgraph": fullgraph,
    "compile, reduce-overhead": reduce_overhead,
    "compile, whole step": compiled_step,
    "compile, optimizer": compiled_optimizer,
    "sync debug mode": sync_debug,
}


def counts() -> dict[str, dict[str, int]]:
    """Dynamo's: graphs, calls, and breaks by reason."""
    from torch._dynamo.utils import counters

    wanted = ("stats", "graph_break", "unimplemented")
    return {name: dict(counters[name]) for name in wanted if name in counters}


def main() -> None:
    """One case."""
    case, with_probe = CASES[sys.argv[1]], sys.argv[2] == "probe"
    one_thread()
    if with_probe:
        probe.install()
    net, optimizer, x = parts()
    train(lambda: eager(net, optimizer, x), 3)  # the probe is armed, and finds the device
    print("ready", flush=True)
    sys.stdin.readline()
    if with_probe:
        stamp_every_step()
    losses = case()
    seen = {"losses": [loss.hex() for loss in losses], "counts": counts()}
    print(json.dumps(seen), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
