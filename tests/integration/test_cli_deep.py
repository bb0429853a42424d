"""`gpuwatch profile` and `gpuwatch memory` on a real training, here without a GPU."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Final

import pytest

from gpuwatch.probe.deep.profiler import MOST_OPERATORS
from gpuwatch.probe.wire import page
from gpuwatch.tui.errors import GpuwatchError, NothingToMeasureError
from gpuwatch.tui.sources.deep_look import DeepLookLink
from tests.processes.command_line import ROOT, TOY, gpuwatch
from tests.processes.monitored import Run, hello_of, started, until, word_of

LEAKING = """\
import probe
probe.install()

import time
import torch

torch.set_num_threads(1)
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
kept = []
while True:
    time.sleep(0.02)
    loss = net(torch.randn(8, 64)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append([torch.zeros(256), str(time.time()) * 100])  # LEAK
"""
LEAK_LINE = 1 + [line.endswith("# LEAK") for line in LEAKING.splitlines()].index(True)


AT_ONCE: Final = {"cli.watching.RIPE_S": 0.5, "cli.profile.VERDICT_S": 1.0}
"""The verdict before the window is not waited for."""
SOON: Final = {**AT_ONCE, "cli.profile.AFTER_S": 0.5, "cli.profile.MOST_AFTER_S": 1.0}
"""Nor are the steps after it: a core computes meanwhile."""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One for all windows: each leaves it as it was."""
    with started(LEAKING, tmp_path_factory.mktemp("training")) as run:
        hello_of(run.pid)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 20)
        yield run


def left_beside_the_socket(pid: int) -> list[str]:
    folder = Path(str(hello_of(pid).endpoint).removeprefix("ipc://")).parent
    return [one.name for one in folder.glob(f"{pid}-*") if one.suffix not in (".sock", ".key")]


@pytest.mark.slow
def test_profile_names_operators_and_leaves_nothing(training: Run, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    words = ("profile", str(training.pid), "-o", str(path), "--json")
    done = gpuwatch(*words, limit_s=90, waits_s=AT_ONCE)
    assert done.returncode == 0, done.stderr
    assert "profiling 3 steps" in done.stderr, "what it costs comes first"
    found = json.loads(done.stdout)
    assert found["on_device"] is False
    assert found["profile"]["steps"] == 3
    names = [one["name"] for one in found["profile"]["operators"]]
    assert "aten::addmm" in names
    assert found["steps_after_over_before"]["ratio"] > 0
    trace = json.loads(path.read_text())
    assert any(one.get("name") == "aten::addmm" for one in trace["traceEvents"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    until(lambda: not left_beside_the_socket(training.pid))
    again = gpuwatch("profile", str(training.pid), "-o", str(path))
    assert again.returncode == 2, "a file is never overwritten"


@pytest.mark.slow
def test_memory_names_the_line_that_keeps(training: Run) -> None:
    done = gpuwatch("memory", str(training.pid), "--seconds", "3", "--json", limit_s=90)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first = found["host"]["lines"][0]
    assert first["line"] == f"train.py:{LEAK_LINE}"
    assert first["a_step"] > 1_000
    tensors = next(one for one in found["host"]["types"] if one["type"] == "torch.Tensor")
    assert tensors["objects"] >= 10
    assert tensors["tensor_bytes"] >= 1_024 * tensors["objects"] / 2


@pytest.mark.slow
def test_memory_names_the_line_that_keeps_in_a_worker(tmp_path: Path) -> None:
    script = ROOT / "tests" / "leaks" / "leaking_worker.py"
    lines = script.read_text().splitlines()
    leak = 1 + [line.endswith("# LEAK") for line in lines].index(True)
    run_it = (
        f"import runpy, sys\nsys.path.insert(0, {str(script.parent)!r})\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    with started(run_it, tmp_path) as run:
        hello_of(run.pid)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 20)
        done = gpuwatch("memory", str(run.pid), "--host", "--seconds", "4", "--json", limit_s=90)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["in_workers"]
        assert (found["asked"], found["answered"]) == (1, 1)
        assert found["lines"][0]["line"] == f"leaking_worker.py:{leak}"
        until(lambda: not left_beside_the_socket(run.pid))


TINY = """\
import probe
probe.install()

import time
import torch

torch.set_num_threads(1)
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
small = torch.zeros(1)
while True:
    for _ in range({operators}):
        small.add_(1)
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep({rest_s})
"""


class OnceItIsOpen(Event):
    """Set once the process refuses another window."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid

    def is_set(self) -> bool:
        return not had_window(self.pid)


def had_window(pid: int) -> bool:
    """A short one, if no other is open."""
    try:
        with DeepLookLink(hello_of(pid), pid) as link:
            link.memory(0.05, True)
    except NothingToMeasureError as error:
        if error.why == "a window is open already":
            return False
        raise
    return True


def left_midway(pid: int) -> bool:
    """Whoever asked for a window of ten minutes closed its connection. False where the short window
    of `OnceItIsOpen` was first."""
    try:
        with DeepLookLink(hello_of(pid), pid) as link:
            link.memory(600.0, True, OnceItIsOpen(pid))
    except GpuwatchError as error:
        return "given up" in str(error)
    return False


@pytest.mark.slow
def test_a_memory_window_ends_once_the_connection_of_who_asked_is_closed(training: Run) -> None:
    """By ctrl-c or kill -9: Python is slow as long as it is open."""
    until(lambda: left_midway(training.pid))
    until(lambda: had_window(training.pid))


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.slow
def test_a_step_of_very_many_operators_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    """Recorded to the end an operator takes 16 KB, and an `add_` of a number is five of them: 8 GB
    a step. A faster machine has run more of them until it is cut."""
    with started(TINY.format(operators=100_000, rest_s=0), tmp_path) as run:
        hello_of(run.pid)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 1)
        before = peak_bytes(run.pid)
        done = gpuwatch("profile", str(run.pid), limit_s=120, waits_s=SOON)
        assert done.returncode == 5, done.stdout
        assert "more operators than can be recorded" in done.stderr
        grew = peak_bytes(run.pid) - before
        assert grew < 8_000_000_000 / 3, f"{grew / 1e6:.0f} MB"
        steps = word_of(run.pid, page.WORD_STEPS)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > steps)
        assert not left_beside_the_socket(run.pid)


@pytest.mark.slow
def test_fewer_steps_of_many_operators_are_recorded(tmp_path: Path) -> None:
    with started(TINY.format(operators=200, rest_s=0.005), tmp_path) as run:
        hello_of(run.pid)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 20)
        words = ("profile", str(run.pid), "--steps", "100", "--json")
        done = gpuwatch(*words, limit_s=120, waits_s=SOON)
        assert done.returncode == 0, done.stderr
        steps = json.loads(done.stdout)["profile"]["steps"]
        # An `add_` of a number is five operators. What a step has is known by whole
        # steps of a sample, but where none ends in it on busy cores.
        assert 2 <= steps <= 2.5 * MOST_OPERATORS / 1_000


def test_a_process_without_a_probe_is_shown_how_to_get_one(tmp_path: Path) -> None:
    with started("print('here', flush=True)\ninput()", tmp_path) as run:
        assert run.line() == "here"
        for command in ("profile", "memory"):
            done = gpuwatch(command, str(run.pid))
            assert done.returncode == 5
            assert "has no probe" in done.stderr
            assert "gpuwatch run" in done.stderr


@pytest.mark.parametrize("command", ["profile", "memory"])
def test_turned_off_commands_are_reported(tmp_path: Path, command: str) -> None:
    with started(TOY.format(steps=100_000), tmp_path, GPUWATCH_CONTROL="0") as run:
        assert run.line() == "armed"
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 5)
        done = gpuwatch(command, str(run.pid), limit_s=60, waits_s=SOON)
        assert done.returncode == 5
        assert "GPUWATCH_CONTROL=0" in done.stderr


def test_a_rank_that_is_alone_is_refused_before_a_window_is_announced(tmp_path: Path) -> None:
    with started(TOY.format(steps=100_000), tmp_path) as run:
        assert run.line() == "armed"
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 5)
        done = gpuwatch("profile", str(run.pid), "--job", limit_s=60, waits_s=SOON)
        assert done.returncode == 5
        assert done.stderr.startswith(f"gpuwatch: process {run.pid} is no rank of a job")
        assert f"gpuwatch profile {run.pid}" in done.stderr


def test_a_run_without_torch_is_reported(tmp_path: Path) -> None:
    with started(TOY.format(steps=100_000), tmp_path) as run:
        assert run.line() == "armed"
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 5)
        done = gpuwatch("profile", str(run.pid), limit_s=60, waits_s=SOON)
        assert done.returncode == 5
        assert "torch is not imported" in done.stderr
