"""A loop of so many tiny layers with the probe, for `tests.gpu.deep_pace`. It begins with a line of
its input and trains until that ends; for each further line it prints the steps since the line
before: time of the step on the GPU's host, and of a reference on the CPU in the same step, us.

The reference is the same kind of work without CUDA: what it shares with the step (the core's clock,
what else the host does) goes out of their ratio. `profile` in a line: torch's own profiler over
four steps, as its users leave it.
"""

import json
import sys
import threading
import time

import torch

import probe


def main() -> None:
    """`python -m tests.gpu.deep_loop LAYERS [eager|compiled]`."""
    layers, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "eager"
    probe.install()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(1)
    net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(layers))).to(device)
    beside = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(max(8, layers // 2))))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    run = torch.compile(net, mode="reduce-overhead") if how == "compiled" else net
    batch, small = torch.randn(16, 64, device=device), torch.randn(4, 8)
    rows: list[tuple[int, int]] = []
    asked: list[str] = []
    over = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            asked.append(line.strip())
        over.set()

    def step() -> None:
        began_ns = time.perf_counter_ns()
        optimizer.zero_grad()
        run(batch).square().mean().backward()
        optimizer.step()
        between_ns = time.perf_counter_ns()
        with torch.no_grad():
            beside(small)
        ended_ns = time.perf_counter_ns()
        rows.append(((between_ns - began_ns) // 1000, (ended_ns - between_ns) // 1000))

    for _ in range(20):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=listen, daemon=True).start()
    while not over.is_set():
        step()
        if asked:
            if asked.pop(0) == "profile":
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
                    for _ in range(4):
                        step()
            print(json.dumps(rows), flush=True)
            rows.clear()


if __name__ == "__main__":
    main()
