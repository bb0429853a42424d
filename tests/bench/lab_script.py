"""A training with one thing to change, by hand with a flag or by `gpuwatch lab` from outside.

    python lab_script.py CASE [--workers N] [--precision fp32|tf32|bf16] [--compile] [--steps N]

Cases: `loader` (each sample waits 2 ms for its file), `matmul` (a transformer in fp32, TF32 off),
`fuse` (many elementwise operations between small products). Steps: more than 20.
"""

import argparse
import itertools
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WARM_UP = 20
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Slow(Dataset[torch.Tensor]):
    """Samples that lie on slow storage."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.full((64,), index / 100_000)


class Ready(Dataset[torch.Tensor]):
    """Whole batches that are there already."""

    def __init__(self, *shape: int) -> None:
        self._batch = torch.randn(*shape, device=DEVICE)

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._batch


class Toned(nn.Module):
    """Elementwise work between products."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x)
            for _ in range(6):
                y = torch.nn.functional.gelu(y) * 1.01 + torch.tanh(y) * 0.1
            x = x + y
        return x


def parts(case: str, workers: int) -> tuple[nn.Module, DataLoader[torch.Tensor]]:
    """The net and the loader of a case."""
    on_gpu = DEVICE.type == "cuda"
    if case == "loader":
        return nn.Linear(64, 64), DataLoader(Slow(), batch_size=16, num_workers=workers)
    if case == "matmul":
        width, length, batch, layers = (2048, 512, 4, 8) if on_gpu else (256, 64, 4, 2)
        layer = nn.TransformerEncoderLayer(width, 16 if on_gpu else 2, 4 * width, 0.0, "gelu",
                                           batch_first=True, norm_first=True)  # fmt: skip
        net = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        return net, DataLoader(Ready(batch, length, width), batch_size=None)
    width, layers, batch = (1024, 6, 32_768) if on_gpu else (64, 2, 512)
    return Toned(width, layers), DataLoader(Ready(batch, width), batch_size=None)


def main() -> None:
    """Train until the steps are done; prints the mean ms of those after the first 20, by the clock
    and of the training thread's CPU time, which a busy machine changes less."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=("loader", "matmul", "fuse"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=10**9)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1 if DEVICE.type == "cpu" else 8)
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    net, loader = parts(options.case, options.workers)
    net = net.to(DEVICE)
    run = torch.compile(net) if options.compile else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    steps = 0
    wall_s = cpu_s = 0.0
    for _ in itertools.count():
        for batch in loader:
            batch = batch.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=options.precision == "bf16"):
                out = run(batch)
            loss = (out.float() - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == WARM_UP:
                wall_s, cpu_s = time.perf_counter(), time.thread_time()
            if steps >= options.steps:
                took = time.perf_counter() - wall_s, time.thread_time() - cpu_s
                print(*(f"{1e3 * one / (steps - WARM_UP):.4f}" for one in took))
                return


if __name__ == "__main__":
    main()
