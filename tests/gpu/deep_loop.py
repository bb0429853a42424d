"""A loop of so many tiny layers with the probe, for `tests.gpu.deep`. It begins with a line of its
input and trains until that ends; for each further line it prints the steps since the line before:
wall and CPU time of each, us.

`profile` in a line: torch's own profiler over four steps, as its users leave it.
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
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    run = torch.compile(net, mode="reduce-overhead") if how == "compiled" else net
    batch = torch.randn(16, 64, device=device)
    rows: list[tuple[int, int]] = []
    asked: list[str] = []
    over = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            asked.append(line.strip())
        over.set()

    def step() -> None:
        optimizer.zero_grad()
        run(batch).square().mean().backward()
        optimizer.step()

    for _ in range(20):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=listen, daemon=True).start()
    wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
    while not over.is_set():
        step()
        wall_now, cpu_now = time.perf_counter_ns(), time.thread_time_ns()
        rows.append(((wall_now - wall_ns) // 1000, (cpu_now - cpu_ns) // 1000))
        wall_ns, cpu_ns = wall_now, cpu_now
        if asked:
            if asked.pop(0) == "profile":
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
                    for _ in range(4):
                        step()
            print(json.dumps(rows), flush=True)
            rows.clear()
            wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()


if __name__ == "__main__":
    main()
