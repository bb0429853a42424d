"""A training inside a container, watched from outside it by `--via 'docker exec -i C'`."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.processes.command_line import gpuwatch, started
from tests.processes.monitored import until
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.remote.containers import Container, container
from tests.remote.test_over_ssh import agents

TRAINING = """
import time

import torch
from torch.utils.data import DataLoader, Dataset

import probe

torch.set_num_threads(1)
probe.install()


class Slow(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(8)


model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for batch in DataLoader(Slow(), batch_size=1):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""
PID = "1"
"""It is the first process there."""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """It has a probe by now."""
    with container(tmp_path_factory.mktemp("container"), TRAINING) as found:
        until(lambda: '"torch"' in gpuwatch("ls", "--via", found.via, "--json").stdout)
        yield found


def left_behind(there: Container) -> list[str]:
    """Files of an agent."""
    return there.inside("sh", "-c", "ls -d /tmp/gpuwatch-*/agent-* 2>/dev/null || true").split()


def has_stacks_and_verdict(line: str) -> bool:
    """It waits for its loader, and py-spy works in there too."""
    is_input = line != "" and json.loads(line)["verdict"]["kind"] == "input"
    return is_input and "Slow.__getitem__ (train.py:" in line


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_training_in_a_container_has_its_verdict(training: Container) -> None:
    before = agents()
    (one,) = map(json.loads, gpuwatch("ls", "--via", training.via, "--json").stdout.splitlines())
    assert (one["pid"], one["script"]) == (1, "train.py")
    with started("attach", "--via", training.via, PID, "--json") as monitor:
        assert monitor.stdout is not None
        end_s, text = time.monotonic() + 60, ""
        while not has_stacks_and_verdict(text) and time.monotonic() < end_s:
            text = monitor.stdout.readline()
        monitor.send_signal(signal.SIGINT)
        monitor.wait(10)
    assert has_stacks_and_verdict(text), text
    until(lambda: agents() == before)
    assert left_behind(training) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_in_a_container(training: Container, number: signal.Signals) -> None:
    before = agents()
    with started("attach", "--via", training.via, PID, "--json") as monitor:
        assert monitor.stdout is not None
        monitor.stdout.readline()
        assert len(agents() - before) >= 1
        monitor.send_signal(number)
        ended_s = time.monotonic()
        until(lambda: agents() == before)
        assert time.monotonic() - ended_s < 2.0 + 0.5  # and the machine's own haste
    assert left_behind(training) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_screen_shows_a_container(training: Container) -> None:
    before = agents()
    words = ("gpuwatch.tui.cli.main", "attach", "--via", training.via, PID)
    with PseudoTerminal(*words, size=(100, 30)) as terminal:
        terminal.read_until(lambda: terminal.shows("INPUT-BOUND"), seconds=30)
        os.write(terminal.master, b"\x03")
        assert terminal.wait() == 0
        until(lambda: agents() == before)
    assert left_behind(training) == []
