"""Ranks as a launcher starts them: processes with a probe that meet at every step."""

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpuwatch.tui.cli.target import has_probe
from tests.processes.command_line import ROOT
from tests.processes.monitored import LIMIT_S, RARELY_COLLECTED, until

LAUNCHER = """
import os, subprocess, sys

first, local = map(int, sys.argv[1:3])
ranks = [
    subprocess.Popen(
        [sys.executable, sys.argv[3]],
        env={**os.environ, "RANK": str(i), "LOCAL_RANK": str(i)},
    )
    for i in range(first, first + local)
]
print(*[rank.pid for rank in ranks], flush=True)
sys.stdin.read()
for rank in ranks:
    rank.kill()
"""
RANK = """
import os, time

import probe

rank = int(os.environ["RANK"])
probe.install()
while True:
    with probe.phase("load"):
        time.sleep(0.03 if rank == 1 else 0.005)
    probe.step()
"""
"""Steps without torch: enough for a page."""
DDP_RANK = """
import os, time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import probe

torch.set_num_threads(1)
probe.install()
dist.init_process_group("gloo")
late = 0.04 if dist.get_rank() == 1 else 0.0


class Slow(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        time.sleep(late)
        return torch.ones(8)


model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for batch in DataLoader(Slow(), batch_size=1):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
"""The same under DistributedDataParallel: rank 1 waits for its data, the others for rank 1."""


HUNG_RANK = DDP_RANK.replace(
    "    optimizer.zero_grad()\n",
    """    optimizer.zero_grad()
    steps = globals().get("steps", 0) + 1
    if steps == 60 and dist.get_rank() == 1:
        time.sleep(1000)
""",
).replace("0.04 if", "0.001 if")
"""Rank 1 makes no step after its 60th: the others stand in an all-reduce that it never joins."""

LOCKED_RANK = HUNG_RANK.replace("import os, time", "import ctypes, os, time").replace(
    "time.sleep(1000)", "ctypes.PyDLL(None).sleep(1000)"
)
"""The same, and rank 1 holds its Python lock meanwhile: its probe cannot answer."""

SLOWED_RANK = DDP_RANK.replace("time.sleep(late)", "time.sleep(late if slowed(index) else 0)")
SLOWED_RANK = SLOWED_RANK.replace(
    "class Slow(",
    """
def slowed(index):
    at = os.path.join(os.path.dirname(__file__), "slow_from")
    if late and os.path.exists(at) and not os.path.getsize(at):
        with open(at, "w") as file:
            file.write(str(index))
    return os.path.exists(at)


class Slow(""",
)
"""Rank 1 waits for its data once there is a file `slow_from`: its first such step is in it then."""


@dataclass
class Job:
    """A launcher and its ranks."""

    launcher: "subprocess.Popen[str]"
    pids: list[int]
    """By rank."""


def free_port() -> int:
    """For ranks to meet at: by it a job differs from others of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def launched(
    folder: Path,
    local: int,
    world: int,
    port: int,
    script: str = RANK,
    first_rank: int = 0,
    **environment: str,
) -> Iterator[Job]:
    """So many ranks of a job of `world`, all with a state page; killed at the end."""
    folder.mkdir(exist_ok=True)
    (folder / "launch.py").write_text(textwrap.dedent(LAUNCHER))
    (folder / "train.py").write_text(RARELY_COLLECTED + textwrap.dedent(script))
    ranks = [str(first_rank), str(local)]
    with subprocess.Popen(
        [sys.executable, str(folder / "launch.py"), *ranks, str(folder / "train.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(local),
            **environment,
        },
    ) as launcher:
        assert launcher.stdout is not None
        job = Job(launcher, [int(pid) for pid in launcher.stdout.readline().split()])
        try:
            assert len(job.pids) == local
            for pid in job.pids:
                until(partial(has_probe, pid))
            yield job
        finally:
            launcher.communicate(timeout=LIMIT_S)  # its stdin closes: it ends its ranks
