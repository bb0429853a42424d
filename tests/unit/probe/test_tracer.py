"""Who is let in, and when: the kernel's part is taken by a list."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.probe.peers import NOBODY, PEER_TIMEOUT_NS, Peers, Tracer


@pytest.fixture
def scope(tmp_path: Path) -> Path:
    path = tmp_path / "ptrace_scope"
    path.write_text("1\n")
    return path


def test_one_process_is_let_in_once_and_nobody_afterwards(scope: Path) -> None:
    let: list[int] = []
    tracer = Tracer(let.append, str(scope))
    for pid in (NOBODY, os.getpid(), os.getpid(), NOBODY, NOBODY):
        tracer.allow(pid)
    assert let == [os.getpid(), NOBODY]


def test_a_process_that_is_not_there_is_nobody(scope: Path) -> None:
    missing = subprocess.Popen(["true"])
    missing.wait()
    let: list[int] = []
    tracer = Tracer(let.append, str(scope))
    tracer.allow(os.getpid())
    tracer.allow(missing.pid)
    assert let == [os.getpid(), NOBODY]


def test_somebody_else_s_process_is_not_let_in(
    scope: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.stat("/proc/1").st_uid != 0:
        pytest.skip("process 1 is not root's here")
    with subprocess.Popen(["sleep", "30"], user="nobody" if os.getuid() == 0 else None) as other:
        theirs = os.stat(f"/proc/{other.pid}").st_uid
        monkeypatch.setattr(os, "getuid", lambda: theirs + 1)
        let: list[int] = []
        Tracer(let.append, str(scope)).allow(other.pid)
        other.kill()
    assert let == []


def test_the_first_process_is_not_let_in_since_all_descend_from_it(scope: Path) -> None:
    let: list[int] = []
    tracer = Tracer(let.append, str(scope))
    tracer.allow(1)
    tracer.allow(os.getpid())
    tracer.allow(1)
    assert let == [os.getpid(), NOBODY]


def test_one_that_has_ended_is_let_in_no_longer(scope: Path) -> None:
    let: list[int] = []
    tracer = Tracer(let.append, str(scope))
    with subprocess.Popen(["sleep", "30"]) as monitor:
        tracer.allow(monitor.pid)
        tracer.allow(monitor.pid)
        monitor.kill()
        monitor.wait()
        tracer.allow(monitor.pid)
    assert let == [monitor.pid, NOBODY]


@pytest.mark.parametrize("text", ["0\n", "2\n", "3\n", None])
def test_where_it_is_not_needed_or_of_no_use_nothing_is_asked(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "ptrace_scope"
    if text is not None:
        path.write_text(text)
    let: list[int] = []
    Tracer(let.append, str(path)).allow(os.getpid())
    assert let == []


def test_it_can_be_turned_off(scope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    let: list[int] = []
    Tracer(let.append, str(scope)).allow(os.getpid())
    assert let == []


def test_the_kernel_s_call_is_harmless_without_yama(scope: Path) -> None:
    tracer = Tracer(scope_file=str(scope))
    tracer.allow(os.getpid())
    tracer.allow(NOBODY)


def test_of_several_monitors_the_one_that_came_last_and_then_the_one_that_is_left() -> None:
    peers = Peers()
    assert peers.newest_pid == NOBODY
    peers.subscribed(b"a", 11, 0)
    peers.subscribed(b"b", 22, 1)
    peers.subscribed(b"a", 11, PEER_TIMEOUT_NS)
    assert peers.newest_pid == 22
    peers.drop_silent(PEER_TIMEOUT_NS + 2, lambda _: 1)
    assert peers.newest_pid == 11
    peers.left(b"a")
    assert peers.newest_pid == NOBODY


def test_a_monitor_whose_connection_is_closed_is_let_in_no_longer() -> None:
    peers = Peers()
    peers.subscribed(b"a", 11, 0)
    peers.subscribed(b"b", 22, 0)
    peers.drop_silent(1, {b"a": 11}.get)
    assert peers.newest_pid == 11


def test_the_publisher_imports_nothing_to_let_somebody_in(
    scope: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork would inherit the lock of that import. torch imports ctypes by itself."""
    tracer = Tracer(None, str(scope))
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "ctypes")
        tracer.allow(os.getpid())
        assert "ctypes" not in sys.modules
    assert tracer._pid == NOBODY, "and it is tried again"
