"""Sockets without a process, directories that cannot be trusted, a py-spy that may not look."""

import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from gpuwatch.probe.identity import Identity
from gpuwatch.tui.discovery.sockets import check_socket
from gpuwatch.tui.discovery.targets import open_target
from gpuwatch.tui.errors import NothingToMeasureError, NotPermittedError
from gpuwatch.tui.messages import Hello
from gpuwatch.tui.model.observations import AnyObservation, Link, Missing, StacksSeen
from gpuwatch.tui.sources.feed import FeedSource
from gpuwatch.tui.sources.stacks import POLL_NS, StacksSource
from tests.processes.monitored import hello_of, started, until

SECOND_NS = 1_000_000_000

FORKED = """
    import os, sys, time
    import probe; probe.install()
    child = os.fork()
    if child == 0:
        time.sleep(600)
    print(child, flush=True)
    sys.stdin.readline()
"""


def hello(endpoint: str | None, fault: str | None = None) -> Hello:
    return Hello(**vars(Identity(endpoint, fault)))


def missing_in(seen: list[AnyObservation]) -> list[str]:
    return [one.reason for one in seen if isinstance(one, Missing)]


@pytest.fixture
def orphan(tmp_path: Path) -> "list[int]":
    """[pid of a training process that was killed, pid of a fork of it that lives on]."""
    with started(FORKED, tmp_path) as run:
        child = int(run.line())
        found = hello_of(run.pid)
        assert found.endpoint is not None
        until(Path(found.endpoint.removeprefix("ipc://")).exists)
        run.process.send_signal(signal.SIGKILL)
        run.process.wait()
        return [found.pid, child]


def test_a_fork_that_outlived_its_training_process_is_reported_to_be_one(orphan: list[int]) -> None:
    dead, child = orphan
    try:
        with pytest.raises(NothingToMeasureError, match=f"training process {dead}, which has died"):
            open_target(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_socket_that_a_fork_still_holds_is_a_dead_end_within_a_second(orphan: list[int]) -> None:
    dead, child = orphan
    folder = Path(f"/tmp/gpuwatch-{os.getuid()}")
    try:
        (path,) = folder.glob(f"{dead}-*.sock")
        feed = FeedSource(hello(f"ipc://{path}"))
        feed.open()
        assert missing_in(feed.poll(0)) == []
        seen = feed.poll(SECOND_NS + 1)
        feed.close()
        assert any(isinstance(one, Link) and one.state == "silent" for one in seen)
        assert missing_in(seen) == ["the probe's socket does not answer"]
        path.unlink()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_probe_without_a_socket_shows_why() -> None:
    feed = FeedSource(hello(None, fault="no socket: the disk is full"))
    feed.open()
    assert missing_in(feed.poll(0)) == ["no socket: the disk is full"]
    assert feed.poll(1) == []
    feed.close()


def test_a_worker_names_its_training_process(tmp_path: Path) -> None:
    with started(FORKED, tmp_path) as run:
        child = int(run.line())
        try:
            with pytest.raises(NothingToMeasureError, match=f"gpuwatch attach {run.pid}"):
                open_target(child)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o777), None])
def test_a_socket_directory_of_somebody_else_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None] | None
) -> None:
    folder = tmp_path / "gpuwatch"
    folder.mkdir(mode=0o700)
    if spoil is not None:
        spoil(folder)
    uid = os.getuid() if spoil is not None else os.getuid() + 1
    with pytest.raises(NotPermittedError, match="cannot be trusted"):
        check_socket(hello(f"ipc://{folder}/x.sock"), os.getpid(), uid)


def poll_until(
    source: StacksSource, wanted: type[AnyObservation], each_ns: int = 0
) -> AnyObservation:
    """The first of its kind, on a clock that goes on by so much with every poll."""
    found: list[AnyObservation] = []
    clock_ns = count(0, each_ns)

    def look() -> list[AnyObservation]:
        found.extend(one for one in source.poll(next(clock_ns)) if isinstance(one, wanted))
        return found

    until(look)
    source.close()
    return found[0]


def test_a_py_spy_that_is_refused_twice_is_reported_once(tmp_path: Path) -> None:
    refused = tmp_path / "py-spy"
    refused.write_text("#!/bin/sh\necho 'Permission Denied: Try running again' >&2\nexit 1\n")
    refused.chmod(0o755)
    source = StacksSource(os.getpid(), program=str(refused))
    source.open()
    seen = poll_until(source, Missing, each_ns=POLL_NS)
    assert isinstance(seen, Missing)
    assert "stacks are off" in seen.reason
    assert seen.fix, "root is shown another way than others"
    assert source.poll(1_000 * SECOND_NS) == []


def test_real_stacks_of_a_real_process(tmp_path: Path) -> None:
    script = """
    import time
    def waits_here():
        print("go", flush=True)
        time.sleep(600)
    waits_here()
    """
    with started(script, tmp_path) as run:
        run.line()
        source = StacksSource(run.pid)
        source.open()
        seen = poll_until(source, StacksSeen)
    assert isinstance(seen, StacksSeen)
    assert seen.stacks[0].role == "main"
    assert seen.stacks[0].frames[-1].startswith("waits_here (")
