"""A training of so many steps a second: `python -m tests.bench.cost.paced STEPS_S WORKERS [bare]`.

Says "ready" once it trains. With "bare" the probe is installed only when it reads "install"; after
every line that it reads it collects its garbage and says "done".
"""

import gc
import sys
import threading
import time
from typing import Any, Final

import torch
from torch.utils.data import DataLoader

import probe
from tests.bench.cost.loop import Numbers
from tests.measuring.one_thread import one_thread

WIDTH: Final = 64
BATCH: Final = 16


def train(steps_s: float, workers: int) -> None:
    """For ever; at its own speed where that is too fast."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(BATCH, WIDTH, device=device)
    batches: DataLoader[Any] = DataLoader(Numbers(), batch_size=BATCH, num_workers=workers)
    due_s = time.monotonic()
    for at, _ in enumerate(batches):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        if at == 0:
            print("ready", flush=True)
        due_s = max(due_s + 1 / steps_s, time.monotonic() - 1.0)
        time.sleep(max(0.0, due_s - time.monotonic()))


def main() -> None:
    """Train; listen on another thread when asked to."""
    steps_s, workers = float(sys.argv[1]), int(sys.argv[2])
    one_thread()
    if "bare" in sys.argv:
        threading.Thread(target=_listen, daemon=True).start()
    else:
        probe.install()
    train(steps_s, workers)


def _listen() -> None:
    for line in sys.stdin:
        if line.strip() == "install":
            probe.install()
        gc.collect()
        print("done", flush=True)


if __name__ == "__main__":
    main()
