"""A small training whose losses and parameters come out as one line, and what it leaves behind.

Each case of this folder runs it with something going wrong around it, and compares that line with
the one of a bare run: what the probe does to a run is nothing, or not one bit is the same.
"""

import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.processes.monitored import ROOT

STEPS = 60

TRAIN = """
    import hashlib, os, signal, sys, threading, time
    import probe; probe.install()
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)

    def train(steps=60, at_step=lambda step: None, before_backward=lambda step: None, workers=0):
        generator = torch.Generator().manual_seed(7)
        rows = TensorDataset(
            torch.randn(256, 8, generator=generator), torch.randn(256, 1, generator=generator)
        )
        net = torch.nn.Linear(8, 1)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        digest = hashlib.sha256()
        step = 0
        while step < steps:
            loader = DataLoader(
                rows, batch_size=16, shuffle=True, generator=generator, num_workers=workers
            )
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(net(x), y)
                optimizer.zero_grad()
                before_backward(step)
                loss.backward()
                optimizer.step()
                digest.update(loss.item().hex().encode())
                step += 1
                at_step(step)
                if step == steps:
                    break
        for parameter in net.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        return "trained " + digest.hexdigest()

    def wait_at(at):
        def at_step(step):
            if step == at:
                print("waiting", flush=True)
                sys.stdin.readline()
        return at_step
"""
"""`train` gives the line; its callbacks, run at every step, must not change it."""

HALFWAY = TRAIN + "    print(train(at_step=wait_at(30)), flush=True)\n"
"""Says that it waits, goes on when it is asked to, and says what came of it."""


@functools.cache
def bare(steps: int = STEPS) -> str:
    """What so many steps give with the probe switched off, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TRAIN) + f"print(train({steps}))"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=150,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GPUWATCH": "0"},
    )
    return done.stdout.strip()


def threads_of(pid: int) -> int:
    """How many a process has: zmq's, torch's and Python's own."""
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors_of(pid: int) -> int:
    """How many a process holds."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def sockets_in(temporary: Path) -> list[Path]:
    """Socket files of runs whose TMPDIR that is."""
    return sorted(temporary.glob("gpuwatch-*/*.sock"))
