"""Commands in the place of ssh: a shell, a namespace of its own, a container runtime."""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.processes.command_line import gpuwatch, toy
from tests.processes.monitored import until
from tests.remote.test_over_ssh import agents, doors


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[subprocess.Popen[str]]":
    """What is watched over there."""
    with toy(tmp_path_factory.mktemp("run")) as process:
        yield process


def why_not(via: str) -> str:
    """Why this command cannot be tried here; "" where it can."""
    words = via.split()
    if shutil.which(words[0]) is None:
        return f"no {words[0]} here"
    if words[0] in ("unshare", "nsenter") and os.geteuid() != 0:
        return "only root makes namespaces"
    return ""


@pytest.mark.parametrize(
    "via", ["sh -c", "env", "unshare --mount --uts --ipc --net", "nsenter --all --target {pid}"]
)
def test_a_command_carries_the_link(training: "subprocess.Popen[str]", via: str) -> None:
    if why := why_not(via):
        pytest.skip(why)
    before = agents(), doors()
    named = via.format(pid=training.pid)
    done = gpuwatch("attach", "--via", named, str(training.pid), "--once")
    assert done.returncode == 0, done.stderr
    assert "HOST-BOUND" in done.stdout
    until(lambda: agents() == before[0])
    assert doors() == before[1]


def test_a_command_that_is_none_is_reported() -> None:
    done = gpuwatch("attach", "--via", "no-such-command --", "1", "--once")
    assert done.returncode == 1
    assert done.stderr.startswith("gpuwatch: no-such-command cannot be started\n")
    done = gpuwatch("attach", "--via", "false", "1", "--once")
    assert done.returncode == 1
    assert done.stderr.startswith("gpuwatch: false cannot be reached\n")
    done = gpuwatch("attach", "--via", "sh -c", "node7:1", "--once")
    assert done.returncode == 2
    assert "both say where" in done.stderr
