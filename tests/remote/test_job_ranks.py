"""Every rank of a job over several hosts by a key, on a real screen. Two agents of this machine
stand for two hosts: each knows the ranks of one launcher."""

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.rank_processes import DDP_RANK, Job, launched
from tests.processes.command_line import gpuwatch, started
from tests.processes.monitored import until
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.remote.servers import free_port
from tests.remote.test_over_ssh import agents, doors
from tests.remote.test_two_nodes import is_named, until_written

SSH = """#!/bin/sh
# Looks like ssh: whatever the host, the command runs here.
for last; do :; done
exec sh -c "$last"
"""


@dataclass(frozen=True)
class Hosts:
    """Two, with a rank each."""

    jobs: tuple[Job, Job]
    ssh: str
    """For GPUWATCH_SSH."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command line that names them."""
        (one,), (two,) = (job.pids for job in self.jobs)
        return ("attach", "--job", f"node1:{one}", f"node2:{two}")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Rank 1, on node2, is late by its loader."""
    folder = tmp_path_factory.mktemp("job")
    ssh = folder / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    port = free_port()
    with (
        launched(folder / "one", 1, 2, port, DDP_RANK, first_rank=0) as one,
        launched(folder / "two", 1, 2, port, DDP_RANK, first_rank=1) as two,
    ):
        yield Hosts((one, two), str(ssh))


def test_ranks_that_are_named_are_one_job(hosts: Hosts) -> None:
    before = agents(), doors()
    with started(*hosts.words, "--json", GPUWATCH_SSH=hosts.ssh) as monitor:
        assert monitor.stdout is not None
        end_s = time.monotonic() + 50
        while not is_named(line := json.loads(monitor.stdout.readline())):
            assert time.monotonic() < end_s, line
        assert line["job"]["late_rank"] == 1
        assert "rank 1 (node2) waits for its loader" in line["job"]["verdict"]["headline"]
        monitor.send_signal(signal.SIGINT)
        until(lambda: agents() == before[0])
    assert doors() == before[1]


def test_a_rank_of_another_job_is_refused(hosts: Hosts, tmp_path: Path) -> None:
    with launched(tmp_path, 1, 2, free_port(), first_rank=1) as other:
        words = (*hosts.words[:3], f"node2:{other.pids[0]}")
        done = gpuwatch(*words, "--once", GPUWATCH_SSH=hosts.ssh)
    assert done.returncode == 2
    assert f"process {other.pids[0]} on node2 belongs to another job" in done.stderr
    assert "they meet at different ports" in done.stderr


def test_a_process_that_is_no_rank_is_refused(hosts: Hosts) -> None:
    words = (*hosts.words[:3], f"node2:{os.getpid()}")
    done = gpuwatch(*words, "--once", GPUWATCH_SSH=hosts.ssh)
    assert done.returncode != 0
    assert f"process {os.getpid()} on node2" in done.stderr


def test_a_key_shows_the_verdict_of_the_rank_on_the_other_host(hosts: Hosts) -> None:
    before = agents(), doors()
    (one,), (two,) = (job.pids for job in hosts.jobs)
    words = ("gpuwatch.tui.cli.main", *hosts.words)
    with PseudoTerminal(*words, size=(120, 40), environ={"GPUWATCH_SSH": hosts.ssh}) as terminal:
        until_written(terminal, rf"pid {one} on node1 .*[^f] 2 ranks")
        for key, pid, host in (b">", two, "node2"), (b">", one, "node1"), (b"<", two, "node2"):
            terminal.output = b""
            os.write(terminal.master, key)
            until_written(terminal, f"pid {pid} on {host} ")
            until(lambda: len(agents() - before[0]) == 2)  # and no more than these
            until_written(terminal, "[^f] 2 ranks")
        until_written(terminal, "INPUT-BOUND")
        os.write(terminal.master, b"q")
        began_s = time.monotonic()
        assert terminal.wait() == 0
        until(lambda: agents() == before[0])
        assert time.monotonic() - began_s < 2.5
    assert doors() == before[1]
