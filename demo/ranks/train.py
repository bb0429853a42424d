"""One rank of a distributed training with one bottleneck, which `--without-cause` removes.

Started once a rank, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as torchrun
does: NCCL where there are GPUs enough, else gloo. Trains until it is stopped. `--when FILE` waits
for that file once all is imported.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import probe

ROWS: Final = 64
LATE_S: Final = 0.03
CHECKPOINT_EVERY: Final = 12
ACCUMULATED: Final = 4
NEIGHBOUR: Final = """
import os, torch
parent = os.getppid()
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while os.getppid() == parent:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
"""
"""Computes on the GPU that it sees, as long as who started it lives."""
FSDP2: Final = ("fsdp2", "fsdp2_alone", "balanced_fsdp2")


class Rows(Dataset[torch.Tensor]):
    """A batch an item, which takes `seconds` to make; what is trained on lies on the device."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._seconds:
            time.sleep(self._seconds)
        return torch.full((ROWS,), float(index % 7))


class Job:
    """What this rank does in which scenario."""

    def __init__(self, scenario: str, cause: bool) -> None:
        self.scenario = scenario
        self.cause = cause
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= self.world
        self.device = torch.device("cuda", self.rank) if self.on_gpu else torch.device("cpu")
        self._random = random.Random(1_000 + self.rank)

    def is_(self, scenario: str, rank: int | None = None) -> bool:
        """Whether this is it, its cause is there, and on this rank."""
        return self.cause and self.scenario == scenario and rank in (None, self.rank)

    @property
    def is_wide(self) -> bool:
        """Large layers and a tiny batch: many bytes to exchange for little work."""
        return self.scenario == "big_layers" or self.scenario in FSDP2

    def model(self) -> nn.Module:
        """Linear layers."""
        if self.is_wide:
            width, layers = (8192, 6) if self.on_gpu else (1024, 6)
        else:
            width, layers = (4096, 6) if self.on_gpu else (384, 3)
        parts: list[nn.Module] = []
        for _ in range(layers):
            parts += [nn.Linear(width, width), nn.ReLU()]
        net = nn.Sequential(*parts).to(self.device)
        if self.scenario in FSDP2:
            return self._sharded(net)
        if self.scenario == "tensor_parallel":
            return self._split(net)
        return DistributedDataParallel(net, device_ids=[self.rank] if self.on_gpu else None)

    def _sharded(self, net: nn.Sequential) -> nn.Module:
        """FSDP2 over all ranks; `fsdp2_alone`: each rank is its own group, so that nothing is
        exchanged and the host issues nearly the same."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        alone = self.scenario == "fsdp2_alone"
        shape = (self.world, 1) if alone else (1, self.world)
        mesh = init_device_mesh(self.device.type, shape, mesh_dim_names=("apart", "shard"))
        for part in list(net)[::2]:
            fully_shard(part, mesh=mesh["shard"])
        fully_shard(net, mesh=mesh["shard"])
        return net

    def _split(self, net: nn.Sequential) -> nn.Module:
        """Layers in pairs, each split over all ranks: one exchange a pair in either direction."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            ParallelStyle,
            RowwiseParallel,
            parallelize_module,
        )

        mesh = init_device_mesh(self.device.type, (self.world,))
        linear = [name for name, part in net.named_children() if isinstance(part, nn.Linear)]
        plan: dict[str, ParallelStyle] = {
            name: RowwiseParallel() if at % 2 else ColwiseParallel()
            for at, name in enumerate(linear)
            if at < len(linear) // 2 * 2
        }
        return parallelize_module(net, mesh, plan)

    def with_neighbour(self) -> "subprocess.Popen[bytes] | None":
        """Somebody else's work on this rank's GPU."""
        if not self.is_("shared_gpu", 1) or not self.on_gpu:
            return None
        seen = {**os.environ, "CUDA_VISIBLE_DEVICES": str(self.rank)}
        return subprocess.Popen([sys.executable, "-c", NEIGHBOUR], env=seen)

    def batch(self, width: int) -> torch.Tensor:
        """On the device, the largest that a step takes."""
        if self.scenario == "balanced_fsdp2":
            rows = 6144 if self.on_gpu else 512
        elif self.is_wide:
            rows = 64 if self.on_gpu else 8
            rows *= 1 if self.cause else 64
        else:
            rows = 8192 if self.on_gpu else 384 * 2 // self.world
        if self.scenario == "computes_twice":
            rows *= 2
        return torch.randn(rows, width, device=self.device)

    def rows_of(self, whole: torch.Tensor) -> torch.Tensor:
        """What this rank takes of it in a step."""
        if self.scenario == "computes_twice" and not self.is_("computes_twice", 1):
            return whole[: len(whole) // 2]
        if self.is_("uneven"):
            return whole[: self._random.randint(1, 8) * len(whole) // 8]
        if self.scenario == "uneven":
            return whole[: len(whole) * 9 // 16]
        return whole

    def loader(self) -> Iterator[torch.Tensor]:
        """Slow on one rank, on all, or on none."""
        slow = self.is_("slow_loader", 1) or self.is_("slow_loader_all")
        return iter(DataLoader(Rows(LATE_S if slow else 0.0), batch_size=None, num_workers=0))

    def between_steps(self, step: int, net: nn.Module, folder: str) -> None:
        """What one rank does beside the training."""
        if self.is_("sleeps", 1):
            time.sleep(LATE_S)
        if self.is_("slow_python", 0):
            _metrics(LATE_S)
        if self.is_("checkpoint", 0) and step % CHECKPOINT_EVERY == 0:
            state = {name: value.cpu() for name, value in net.state_dict().items()}
            for _ in range(1 if self.on_gpu else 40):
                torch.save(state, os.path.join(folder, "checkpoint.pt"))

    def no_sync(self, net: Any, step: int) -> Any:
        """Gradients are exchanged with every fourth batch."""
        if self.scenario == "accumulation" and step % ACCUMULATED:
            return net.no_sync()
        return nullcontext()


def _metrics(seconds: float) -> float:
    """Python arithmetic for that long."""
    until, total = time.perf_counter() + seconds, 0.0
    while time.perf_counter() < until:
        total += sum(number * 0.5 for number in range(200))
    return total


def train(job: Job) -> None:
    """Until somebody stops it."""
    torch.manual_seed(0)
    net = job.model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    width = next(net.parameters()).shape[-1]
    whole = job.batch(width)
    job.with_neighbour()
    autocast = torch.autocast("cuda", torch.bfloat16) if job.on_gpu else nullcontext()
    with tempfile.TemporaryDirectory() as folder:
        for step, _ in enumerate(job.loader()):
            rows = job.rows_of(whole)
            with job.no_sync(net, step):
                with autocast:
                    loss = net(rows).float().square().mean()
                loss.backward()
            if job.scenario != "accumulation" or step % ACCUMULATED == 0:
                optimizer.step()
                optimizer.zero_grad()
            job.between_steps(step, net, folder)
            if step % 20 == 0:
                loss.item()


def main() -> None:
    """Join the group and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--without-cause", action="store_true")
    parser.add_argument("--when", type=Path, metavar="FILE", help="train once it exists")
    given = parser.parse_args()
    while given.when is not None and not given.when.exists():
        time.sleep(0.05)
    probe.install()
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= world
    if on_gpu:
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    else:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    train(Job(given.scenario, not given.without_cause))


if __name__ == "__main__":
    main()
