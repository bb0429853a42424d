"""Warnings point where they would without the probe."""

import subprocess
import sys
from pathlib import Path

from tests.processes.command_line import environment
from tests.processes.monitored import SOON_ENDED

SCRIPT = (
    SOON_ENDED
    + """
import logging, sys, warnings
import torch
from torch.utils.data import DataLoader, IterableDataset
if "probe" in sys.argv:
    import probe
    probe.install()
logging.basicConfig(stream=sys.stdout, format="%(filename)s:%(lineno)d %(message)s")

class Rows(IterableDataset):
    def __iter__(self):
        warnings.warn("the rows begin", stacklevel=2)
        logging.getLogger().warning("rows", stacklevel=2)
        for _ in range(3):
            yield torch.ones(2)

class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        warnings.warn("in the backward", stacklevel=2)
        return grad * 2

def saved(x):
    warnings.warn("being pickled", stacklevel=2)
    return (int, ())

class Odd:
    __reduce__ = saved

net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(Rows(), batch_size=1, pin_memory=True)
for epoch in range(2):
    for batch in loader:
        Custom.apply(net(batch)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.save(Odd(), "/dev/null")
"""
)


def shown(path: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "always", str(path), *words],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        check=True,
    )
    return done.stdout.splitlines()


def test_each_warning_points_where_it_would_without(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    bare = shown(path)
    assert any("pin_memory" in line for line in bare)
    assert any("being pickled" in line for line in bare)
    assert shown(path, "probe") == bare


def test_a_traceback_ends_in_the_users_own_line(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("return grad * 2", "raise ValueError('mine')"))
    done = subprocess.run(
        [sys.executable, str(path), "probe"], capture_output=True, text=True, env=environment()
    )
    assert "ValueError: mine" in done.stderr
    places = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert places[-1].startswith(f'  File "{path}"')
