"""Another user of the machine: real, made for the test, and kept out of everything."""

import os
import pwd
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.probe.socket_place import key_path
from gpuwatch.probe.wire import page
from gpuwatch.tui.discovery.sockets import check_socket
from gpuwatch.tui.discovery.state_page import pages_of as opened_pages
from gpuwatch.tui.errors import NotPermittedError
from tests.processes.command_line import environment, gpuwatch
from tests.processes.monitored import hello_of, started, until

NAME = f"gpuwatch-{os.getpid()}"
ARMED = "import probe, sys; probe.install(); print('go', flush=True); sys.stdin.readline()"

As = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make another user"),
    pytest.mark.xdist_group("machine"),
]


@pytest.fixture(scope="module")
def other() -> Iterator[int]:
    """Its uid; the user is gone afterwards."""
    made = subprocess.run(["useradd", "--system", "--no-create-home", NAME], check=False)
    if made.returncode not in (0, 9):
        pytest.skip("useradd does not work here")
    yield pwd.getpwnam(NAME).pw_uid
    subprocess.run(["userdel", NAME], check=True)


@pytest.fixture
def as_other(other: int, tmp_path: Path) -> As:
    """Run Python as that user, with what we import read before: our packages may be closed to it.

    `victim` is a process of ours, 0 for none.
    """

    def run(code: str, *arguments: str, key: str = "") -> "subprocess.CompletedProcess[str]":
        runner = tmp_path / "as_other.py"
        runner.write_text(
            "import os, socket, stat, sys, tempfile, zmq\n"
            "import msgspec, psutil\n"
            "from gpuwatch.probe.endpoint import Endpoint\n"
            "from gpuwatch.tui.messages import SCHEMA, encode_message\n"
            "from gpuwatch.tui.requests import Subscribe\n"
            "from gpuwatch.tui.discovery.state_page import pages_of\n"
            f"KEY = {key!r}\n"
            f"os.setgroups([]); os.setgid({other}); os.setuid({other})\n" + textwrap.dedent(code)
        )
        return subprocess.run(
            [sys.executable, str(runner), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(),
            check=False,
        )

    return run


def test_it_can_neither_read_nor_subscribe_nor_command(tmp_path: Path, as_other: As) -> None:
    with started(ARMED, tmp_path) as run:
        assert run.line() == "go"
        path = (hello_of(run.pid).endpoint or "").removeprefix("ipc://")
        until(Path(path).exists)
        assert Path(key_path(path)).stat().st_mode & 0o777 == 0o600
        done = as_other(
            """
            pid, path = int(sys.argv[1]), sys.argv[2]
            for what in (lambda: pages_of(pid), lambda: os.listdir(os.path.dirname(path)),
                         lambda: os.unlink(path), lambda: os.stat(path),
                         lambda: open(path.removesuffix(".sock") + ".key").read(),
                         lambda: os.listdir(f"/proc/{pid}/fd"),
                         lambda: os.kill(pid, 0),
                         lambda: socket.socket(socket.AF_UNIX).connect(path)):
                try:
                    print("could", what())
                except PermissionError:
                    print("refused")
            with zmq.Context() as context, context.socket(zmq.DEALER) as knock:
                knock.linger = 0
                knock.connect(f"ipc://{path}")
                knock.send(encode_message(Subscribe(SCHEMA, os.getpid(), True, key=KEY)))
                print("could" if knock.poll(1500) else "refused")
            """,
            str(run.pid),
            path,
            key=Path(key_path(path)).read_text(),
        )
        assert (done.stdout.splitlines(), done.stderr) == (["refused"] * 9, "")
        run.send()
        assert run.finish() == (0, "", "")


@pytest.mark.fault
def test_the_kernel_turns_it_away_where_the_directory_would_not(
    tmp_path: Path, as_other: As
) -> None:
    """The second lock: libzmq asks the kernel who connects. Root is let in, and so are we."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        started(ARMED, tmp_path, TMPDIR=temporary) as run,
    ):
        assert run.line() == "go"
        path = Path((hello_of(run.pid).endpoint or "").removeprefix("ipc://"))
        until(path.exists)
        for place in (Path(temporary), path.parent, path):
            place.chmod(0o777)
        done = as_other(
            """
            with zmq.Context() as context, context.socket(zmq.DEALER) as knock:
                knock.linger = 0
                knock.connect(f"ipc://{sys.argv[1]}")
                knock.send(encode_message(Subscribe(SCHEMA, os.getpid(), True, key=KEY)))
                socket.socket(socket.AF_UNIX).connect(sys.argv[1])
                print("could" if knock.poll(1500) else "refused")
            """,
            str(path),
            key=Path(key_path(str(path))).read_text(),
        )
        assert (done.stdout.strip(), done.stderr) == ("refused", "")


@pytest.mark.parametrize("kind", ["directory", "open directory", "link", "file"])
def test_what_it_planted_is_not_used(tmp_path: Path, other: int, kind: str) -> None:
    planted = tmp_path / f"gpuwatch-{os.getuid()}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "link":
        planted.symlink_to(elsewhere)
    elif kind == "file":
        planted.write_text("")
    else:
        planted.mkdir(mode=0o700 if kind == "directory" else 0o777)
        os.chown(planted, other, other)
    with started(ARMED, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "go"
        place = Path((hello_of(run.pid).endpoint or "").removeprefix("ipc://")).parent
        assert place == tmp_path / f"gpuwatch-{os.getuid()}-2"
        assert (place.stat().st_uid, place.stat().st_mode & 0o777) == (os.getuid(), 0o700)
        run.send()
        assert run.finish() == (0, "", "")
    assert list(elsewhere.iterdir()) == []
    if planted.is_dir():
        assert list(planted.iterdir()) == []


HOSTILE = """
import os, socket, sys, time
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
identity = Identity({endpoint!r}, None)
identity.argv = ["\\x1b]0;owned\\x07\\x9b2Jtrain.py"]
held = StatePage(identity.as_json(page.HELLO_BYTES))
{more}
print("go", flush=True)
time.sleep(600)
"""


@pytest.fixture
def hostile(other: int, tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start a process of that user's which says it is a probe at some endpoint; its pid."""
    running: list[subprocess.Popen[str]] = []

    def start(endpoint: str, more: str = "") -> int:
        code = HOSTILE.format(uid=other, endpoint=endpoint, more=more)
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=environment(),
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        return process.pid

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "endpoint",
    ["tcp://192.0.2.1:5555", "ipc://@abstract", "ipc:///tmp/x.sock", "ipc://relative/x", "inproc://x",
     "pgm://239.0.0.1:5555"],
)  # fmt: skip
def test_root_is_not_led_to_another_socket(hostile: Callable[..., int], endpoint: str) -> None:
    pid = hostile(endpoint)
    (seen,) = opened_pages(pid)
    assert seen.hello.endpoint == endpoint
    with pytest.raises(NotPermittedError):
        check_socket(seen.hello, pid, pwd.getpwnam(NAME).pw_uid)
    seen.close()
    done = gpuwatch("attach", str(pid), "--once")
    assert done.returncode == 4, done.stdout


@pytest.mark.fault
def test_its_names_do_not_command_roots_terminal(hostile: Callable[..., int]) -> None:
    pid = hostile(f"ipc:///tmp/gpuwatch-{pwd.getpwnam(NAME).pw_uid}/x.sock")
    for arguments in (["ls"], ["attach", str(pid), "--plain", "--duration", "1"]):
        done = gpuwatch(*arguments)
        assert "train.py" in done.stdout, done.stderr
        for sign in ("\x1b", "\x9b", "\x07"):
            assert sign not in done.stdout + done.stderr


def test_a_pipe_that_is_called_a_page_holds_nobody_up(
    hostile: Callable[..., int], tmp_path: Path
) -> None:
    fifo = Path(f"/tmp/memfd:{page.NAME} {os.getpid()}")
    os.mkfifo(fifo, 0o666)
    fifo.chmod(0o666)
    try:
        pid = hostile("ipc:///x", f"os.open({str(fifo)!r}, os.O_RDONLY | os.O_NONBLOCK)")
        assert len(opened_pages(pid)) == 1
        assert gpuwatch("ls", limit_s=20).returncode == 0
    finally:
        fifo.unlink()
