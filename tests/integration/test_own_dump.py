"""A run that hangs where py-spy may not look: the probe itself says where, once, and to its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
import zmq

from gpuwatch.tui.cli.target import watch_live
from gpuwatch.tui.messages import Dump, encode_message
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.requests import AskStacks
from gpuwatch.tui.sources import stacks
from gpuwatch.tui.sources.marks.reader import Decoded, ReplyReader
from gpuwatch.tui.steps import Batch
from gpuwatch.tui.verdict.thresholds import causes
from tests.processes.command_line import environment
from tests.processes.monitored import LIMIT_S, Run, hello_of, started, subscription, until

HANGS = """
    import sys, threading, time
    import gpuwatch.probe.peers, probe
    gpuwatch.probe.peers.QUIET_NS = {quiet_ns}
    probe.install()
    lock, held = threading.Lock(), threading.Event()

    def holds():
        with lock:
            held.set()
            sys.stdin.readline()

    def waits_for_the_lock():
        print("hangs", flush=True)
        with lock:
            pass

    for _ in range(30):
        with probe.phase("load"):
            time.sleep(0.01)
        probe.step()
    threading.Thread(target=holds, name="holder").start()
    held.wait()
    waits_for_the_lock()
"""
NOBODY: Final = 65534
REFUSAL = "Permission Denied: Try running again with elevated permissions"


@contextmanager
def hanging(folder: Path, quiet_ns: int = 0, **environment: str) -> Iterator[Run]:
    with started(HANGS.format(quiet_ns=quiet_ns), folder, **environment) as run:
        assert run.line() == "hangs"
        yield run


class Peer:
    """A monitor that asks for whatever a test wants."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(endpoint)
        self._endpoint = endpoint
        self._replies = ReplyReader()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=0)

    def send(self, *frames: bytes) -> None:
        for frame in frames:
            self._socket.send(frame)

    def subscribes(self) -> None:
        self.send(subscription(self._endpoint, history=False))

    def receive(self) -> Decoded:
        assert self._socket.poll(int(LIMIT_S * 1000)), "no reply"
        return self._replies.read(self._socket.recv())

    def receive_until(self, refused: int) -> list[Decoded]:
        """All until a batch that counts so many refused requests: each frame before was read."""
        received = [self.receive()]
        while not (isinstance(received[-1], Batch) and received[-1].refused >= refused):
            received.append(self.receive())
        return received


def peer_of(run: Run) -> Peer:
    endpoint = hello_of(run.pid).endpoint
    assert endpoint is not None
    until(Path(endpoint.removeprefix("ipc://")).exists)
    return Peer(endpoint)


def dumps_in(received: list[Decoded]) -> list[Dump]:
    return [one for one in received if isinstance(one, Dump)]


def test_all_threads_are_reported_once_and_the_training_thread_first(tmp_path: Path) -> None:
    with hanging(tmp_path) as run, peer_of(run) as peer:
        peer.subscribes()
        peer.send(encode_message(AskStacks()), encode_message(AskStacks()), b"end")
        (dump,) = dumps_in(peer.receive_until(refused=1))
    first = dump.threads[0]
    assert first.training
    assert [function for function, _, _ in first.frames][-1] == "waits_for_the_lock"
    holder = next(thread for thread in dump.threads if thread.name == "holder")
    assert "holds" in [function for function, _, _ in holder.frames]
    assert "gpuwatch" not in [thread.name for thread in dump.threads]


@pytest.mark.parametrize(
    ("quiet_ns", "subscribed"), [(10**12, True), (0, False)], ids=["it moves", "a stranger"]
)
def test_nobody_else_is_notified(tmp_path: Path, quiet_ns: int, subscribed: bool) -> None:
    with hanging(tmp_path, quiet_ns) as run, peer_of(run) as peer:
        if subscribed:
            peer.subscribes()
        peer.send(encode_message(AskStacks()), b"end")
        peer.subscribes()
        assert dumps_in(peer.receive_until(refused=1)) == []


def test_what_is_no_command_is_counted_and_the_run_goes_on(tmp_path: Path) -> None:
    nonsense = [
        b"",
        b"\xc1" * 4_000,
        encode_message(AskStacks())[:-1],
        *map(msgspec.json.encode, (["burst", 3], ["memory"], ["exec", "id"], ["rate", 10**9])),
    ]
    with hanging(tmp_path) as run, peer_of(run) as peer:
        peer.subscribes()
        peer.send(*nonsense)
        received = peer.receive_until(refused=len(nonsense))
        assert run.process.poll() is None
    assert dumps_in(received) == []
    last = received[-1]
    assert isinstance(last, Batch)
    assert (last.refused, last.fault) == (len(nonsense), None)


def test_turned_off_it_reports_that(tmp_path: Path) -> None:
    with hanging(tmp_path, GPUWATCH_CONTROL="0") as run, peer_of(run) as peer:
        peer.subscribes()
        peer.send(encode_message(AskStacks()), b"end")
        (dump,) = dumps_in(peer.receive_until(refused=1))
    assert dump.threads == []
    assert "GPUWATCH_CONTROL=0" in dump.why_not


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor whose py-spy is refused, and that takes a second for a stall."""
    refused = tmp_path / "py-spy"
    refused.write_text(f"#!/bin/sh\necho '{REFUSAL}' >&2\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setattr(stacks, "find_py_spy", lambda: str(refused))
    monkeypatch.setattr(causes, "STALL_S", 1.0)


@pytest.mark.usefixtures("impatient")
def test_the_monitor_asks_when_nothing_moves_and_shows_what_it_is_sent(tmp_path: Path) -> None:
    with hanging(tmp_path) as run:
        picture = watch_live(run.pid, stacks=True)
        picture.start()
        try:
            seen: list[Snapshot] = []

            def reported() -> bool:
                seen.append(picture.snapshot())
                return any(one.source == "probe" for one in seen[-1].verdict.finding.evidence)

            until(reported)
        finally:
            picture.close()
    last = seen[-1]
    assert last.verdict.finding.kind == "stalled"
    assert "in waits_for_the_lock (train.py" in last.verdict.finding.headline
    assert last.trees is not None
    assert last.trees.sorted_by == "dump"
    assert any("holds (train.py" in frame for one in last.trees.all.merged for frame in one.frames)
    assert any(one.signal == "stacks" for one in last.status.missing)


STRANGER = """
import os, sys, zmq
from gpuwatch.tui.messages import encode_message
from gpuwatch.tui.requests import AskStacks
from tests.processes.monitored import subscription
subscribes = subscription(sys.argv[1], history=False)
os.setuid(int(sys.argv[2]))
socket = zmq.Context().socket(zmq.DEALER)
socket.linger = 0
socket.connect(sys.argv[1])
socket.send(subscribes)
socket.send(encode_message(AskStacks()))
print("answered" if socket.poll(2_000) else "silence", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_another_user_gets_no_answer_even_where_the_directory_is_open() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with hanging(Path(folder), TMPDIR=folder) as run, peer_of(run):
            endpoint = hello_of(run.pid).endpoint
            assert endpoint is not None
            path = Path(endpoint.removeprefix("ipc://"))
            path.parent.chmod(0o777)
            path.chmod(0o777)
            output = {uid: as_user(uid, endpoint) for uid in (0, NOBODY)}
    assert output == {0: "answered", NOBODY: "silence"}


def as_user(uid: int, endpoint: str) -> str:
    command = [sys.executable, "-c", STRANGER, endpoint, str(uid)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    return done.stdout.strip()
