"""Which hosts a job runs on: lists as people and SLURM write them, hostfiles, NCCL."""

import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.remote.roster import (
    MOST_HOSTS,
    RAS_REQUESTS,
    Roster,
    from_ras,
    from_slurm,
    hosts_in,
    ras_roster,
    read_hostfile,
)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node7", ["node7"]),
        ("node7,ann@node8", ["node7", "ann@node8"]),
        ("node[1-3,7]", ["node1", "node2", "node3", "node7"]),
        ("gpu[08-10]-ib,login", ["gpu08-ib", "gpu09-ib", "gpu10-ib", "login"]),
        ("r[1-2]n[1-2]", None),
    ],
)
def test_hosts(text: str, hosts: list[str] | None) -> None:
    if hosts is None:  # two ranges in a name: scontrol reads those
        with pytest.raises(UsageError):
            hosts_in(text)
    else:
        assert hosts_in(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        *("", "-oProxyCommand=id", "a b", "node[1-99999999]", "node[a-b]", "$(id)", "a;b"),
        *("node[5-3]", "node[1-2,5-3]"),
    ],
)
def test_no_hosts(text: str) -> None:
    with pytest.raises(UsageError):
        hosts_in(text)


def test_no_more_hosts_than_a_cluster_has() -> None:
    with pytest.raises(UsageError, match="1,024"):
        hosts_in(",".join(f"n{number}" for number in range(MOST_HOSTS + 1)))


def test_a_hostfile(tmp_path: Path) -> None:
    file = tmp_path / "hostfile"
    file.write_text("# of the cluster\nnode1 slots=8\nnode2:8\n\nnode3 # spare\n")
    assert read_hostfile(str(file)) == ["node1", "node2", "node3"]
    with pytest.raises(UsageError):
        read_hostfile(str(tmp_path / "none"))


def test_slurm_by_the_environment_of_a_rank() -> None:
    environ = {"SLURM_JOB_NODELIST": "node[1-9]", "SLURM_STEP_NODELIST": "node[1-2]"}
    assert from_slurm(environ) == Roster(("node1", "node2"), "SLURM")
    assert from_slurm({}) is None


@pytest.mark.parametrize("fault", [subprocess.TimeoutExpired("scontrol", 5), OSError("no memory")])
def test_a_slurm_that_does_not_answer_names_no_hosts(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", run)
    assert from_slurm({"SLURM_JOB_NODELIST": "rack[1-2]n[1-4]"}) is None


STATUS = {
    "nccl_version": "2.28.9",
    "communicators": [
        {
            "hash": "0x1",
            "ranks": [
                {"rank": 0, "host": "10.0.0.1", "pid": 4_001, "cuda_dev": 0},
                {"rank": 1, "host": "10.0.0.2", "pid": 4_001, "cuda_dev": 0},
                {"rank": 2, "host": "10.0.0.2", "pid": 4_002, "cuda_dev": 1},
            ],
        }
    ],
}


def test_ras_names_the_hosts_of_the_job_that_the_process_is_of() -> None:
    answer = b"SERVER PROTOCOL 2\nOK\nOK\n" + json.dumps(STATUS).encode()
    assert ras_roster(answer, 4_002) == Roster(("10.0.0.1", "10.0.0.2"), "NCCL RAS")
    assert ras_roster(answer, 9_999) is None  # another job of the same user


@pytest.mark.parametrize(
    "answer",
    [b"", b"ERROR\n", b"{" * 100_000, b'{"host": "-oProxyCommand=id", "pid": 1}', b"\xff{}", b"[]"],
)
def test_what_is_no_answer_names_no_host(answer: bytes) -> None:
    found = ras_roster(answer, 1)
    assert found is None or found.hosts == ()


def test_ras_is_asked_as_it_wants_to_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked: list[bytes] = []

        def serve() -> None:
            come, _ = server.accept()
            with come:
                while b"STATUS\n" not in b"".join(asked):
                    asked.append(come.recv(1_000))
                come.sendall(b"SERVER PROTOCOL 2\n" + json.dumps(STATUS).encode())

        answering = threading.Thread(target=serve)
        answering.start()
        found = from_ras(4_001, server.getsockname())
        answering.join()
    assert found is not None
    assert found.hosts == ("10.0.0.1", "10.0.0.2")
    assert b"".join(asked) == RAS_REQUESTS


def test_nobody_answers_where_there_is_no_nccl() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    assert from_ras(1, address) is None
