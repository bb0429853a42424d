"""Processes that train without a probe, or look from outside as if they did."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.processes.command_line import environment
from tests.processes.monitored import RARELY_COLLECTED

LOADS_SLOWLY = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1_000_000
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(8)

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(Slow(), batch_size=4)
for number, batch in enumerate(loader):
    net(batch).sum().backward()
    optimizer.step()
    if number == 1:
        print("trains", flush=True)
"""
"""All that it does is wait for its own dataset."""
TOY = """
import mmap, os, sys, time
with open({library!r}, "rb") as file:
    torch = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
{more}
os.write(1, b"here %d\\n" % os.getpid())
time.sleep(600)
"""
"""Python that has a file called libtorch.so mapped, as who looks from outside sees it."""


@contextmanager
def training(folder: Path, script: str = LOADS_SLOWLY) -> "Iterator[subprocess.Popen[str]]":
    """A real one, in the middle of its work."""
    path = folder / "train.py"
    path.write_text(RARELY_COLLECTED + script)
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "trains\n"
            yield process
        finally:
            process.kill()


def toy(folder: Path, name: str = "train.py", more: str = "") -> Path:
    """The script of a process that seems to have torch; `more` it does before it says so."""
    library = folder / "libtorch.so"
    library.write_bytes(b"\\0" * 4096)
    path = folder / name
    path.write_text(TOY.format(library=str(library), more=more))
    return path


@contextmanager
def running(
    command: Sequence[str], lines_first: int = 1, **more: str
) -> "Iterator[tuple[subprocess.Popen[str], list[int]]]":
    """A program and the pids that it, and what it starts, have reported; all ended after it."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**more),
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(lines_first)]
            yield process, [int(line.split()[1]) for line in lines]
        finally:
            # torchrun's ranks have sessions of their own.
            below = psutil.Process(process.pid).children(recursive=True)
            os.killpg(process.pid, 9)
            for child in below:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
