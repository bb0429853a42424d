"""The socket that a process names: what is checked is what is connected to."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.tui.discovery.sockets import HeldSocket, open_socket
from gpuwatch.tui.errors import NotPermittedError
from tests.processes.command_line import ROOT, environment

NOBODY = 65534
ME = os.getuid()

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
SETPRIV = shutil.which("setpriv")
CONNECTS = f"""
import socket, sys
from gpuwatch.tui.discovery.sockets import open_socket

held = open_socket("ipc://" + sys.argv[1], int(sys.argv[2]), {NOBODY})
socket.socket(socket.AF_UNIX).connect(held.address.removeprefix("ipc://"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a probe makes it."""
    made = tmp_path / "gpuwatch"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def bind() -> Iterator[Callable[[Path], socket.socket]]:
    bound: list[socket.socket] = []

    def bind_at(path: Path) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.bind(str(path))
        made.listen()
        bound.append(made)
        return made

    yield bind_at
    for one in bound:
        one.close()


def opened(path: Path, uid: int = ME) -> HeldSocket | None:
    return open_socket(f"ipc://{path}", os.getpid(), uid)


Bind = Callable[[Path], socket.socket]


def test_what_was_checked_is_what_is_connected_to(folder: Path, bind: Bind) -> None:
    """Its user replaces it between the check and the connection."""
    checked = bind(folder / "1-1.sock")
    held = opened(folder / "1-1.sock")
    assert held is not None
    (folder / "1-1.sock").rename(folder / "aside")
    other = bind(folder / "1-1.sock")
    with socket.socket(socket.AF_UNIX) as knock:
        knock.connect(held.address.removeprefix("ipc://"))
        checked.setblocking(False)
        checked.accept()[0].close()
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.accept()
    held.close()


@pytest.mark.parametrize("missing", ["socket", "folder"])
def test_what_is_not_there_is_none(folder: Path, missing: str) -> None:
    if missing == "folder":
        folder.rmdir()
    assert opened(folder / "1-1.sock") is None


@pytest.mark.parametrize("kind", ["link", "file", "pipe", "directory"])
def test_what_is_no_socket_is_refused(folder: Path, bind: Bind, kind: str) -> None:
    path = folder / "1-1.sock"
    if kind == "link":
        bind(folder / "real")
        path.symlink_to(folder / "real")
    elif kind == "file":
        path.touch()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(NotPermittedError, match="cannot be trusted"):
        opened(path)


@needs_root
@pytest.mark.parametrize("whose", ["directory", "socket"])
def test_what_belongs_to_somebody_else_is_refused(folder: Path, bind: Bind, whose: str) -> None:
    bind(folder / "1-1.sock")
    os.chown(folder if whose == "directory" else folder / "1-1.sock", NOBODY, NOBODY)
    for uid in (ME, NOBODY):
        with pytest.raises(NotPermittedError, match="cannot be trusted"):
            opened(folder / "1-1.sock", uid)


@needs_root
def test_roots_monitor_follows_no_link_of_another_users(
    tmp_path: Path, folder: Path, bind: Bind
) -> None:
    """Neither in place of the directory nor on the way to it: that user may name what they like."""
    bind(folder / "1-1.sock")
    (tmp_path / "way").symlink_to(tmp_path)
    held = opened(tmp_path / "way" / "gpuwatch" / "1-1.sock")
    assert held is not None
    held.close()
    os.chown(tmp_path / "way", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(NotPermittedError, match="A link on the way"):
        opened(tmp_path / "way" / "gpuwatch" / "1-1.sock")


def test_nothing_leads_up_and_no_link_leads_in_circles(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for path in (f"{folder}/../gpuwatch/1-1.sock", f"{tmp_path}/round/1-1.sock"):
        with pytest.raises(NotPermittedError, match="A link on the way"):
            open_socket(f"ipc://{path}", os.getpid(), ME)


def test_nothing_stays_open(folder: Path, bind: Bind) -> None:
    bind(folder / "1-1.sock")
    before = len(os.listdir("/proc/self/fd"))
    held = opened(folder / "1-1.sock")
    assert held is not None
    assert len(os.listdir("/proc/self/fd")) == before + 1
    held.close()
    opened(folder / "2-2.sock")
    folder.chmod(0o755)
    with pytest.raises(NotPermittedError):
        opened(folder / "1-1.sock")
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_key_is_that_beside_the_socket(folder: Path, bind: Bind, tmp_path: Path) -> None:
    bind(folder / "1-1.sock")
    key = folder / "1-1.key"

    def seen() -> str:
        held = opened(folder / "1-1.sock")
        assert held is not None
        held.close()
        return held.key

    assert seen() == "", "a probe that has none"
    key.write_text("a key")
    assert seen() == "a key"
    key.write_bytes(b"x" * 10_000)
    assert len(seen()) <= 256
    key.unlink()
    (tmp_path / "secret").write_text("of somebody else")
    key.symlink_to(tmp_path / "secret")
    assert seen() == ""
    key.unlink()
    os.mkfifo(key)
    assert seen() == "", "and nobody waits at a pipe"


@needs_root
def test_a_key_of_another_users_is_not_read(folder: Path, bind: Bind) -> None:
    bind(folder / "1-1.sock")
    (folder / "1-1.key").write_text("root's")
    os.chown(folder / "1-1.sock", NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    held = opened(folder / "1-1.sock", NOBODY)
    assert held is not None
    held.close()
    assert held.key == ""


@needs_root
@pytest.mark.skipif(SETPRIV is None, reason="setpriv is not installed (apt install util-linux)")
def test_an_exporter_with_the_daemonsets_capabilities_reaches_every_users_probe(
    folder: Path, bind: Bind
) -> None:
    assert SETPRIV is not None
    manifest = (ROOT / "docs" / "fleet" / "daemonset.yml").read_text()
    given = re.search(r"drop: \[ALL\], add: \[(.*)\]", manifest)
    assert given is not None
    capabilities = ",".join(f"+{name.strip().lower()}" for name in given[1].split(","))
    bind(folder / "1-1.sock")
    os.chown(folder / "1-1.sock", NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    asked = [sys.executable, "-c", CONNECTS, str(folder / "1-1.sock"), str(os.getpid())]
    done = subprocess.run(
        [SETPRIV, f"--bounding-set=-all,{capabilities}", "--inh-caps=-all", *asked],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
