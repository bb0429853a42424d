"""The directory of the sockets is deleted, full, read-only, or not ours: the run goes on."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq

from gpuwatch.probe.endpoint import Endpoint
from gpuwatch.probe.socket_place import YOUNG_S, key_path, remove_leftovers
from gpuwatch.probe.wire import page
from tests.faults.training import TRAIN, bare
from tests.processes.monitored import hello_of, pages_of, started, subscribed, until

TRAINS_AFTER = TRAIN + "    print('waiting', flush=True); sys.stdin.readline(); print(train())\n"
HELD = """
    import tempfile
    tempfile.tempdir = os.environ["HELD"]
"""
"""As when the program had asked for it while there was room."""


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    held = Endpoint(str(tmp_path / "gpuwatch" / "1-1.sock"))
    yield held
    held.close()


@contextmanager
def connected(endpoint: Endpoint) -> "Iterator[zmq.Socket[bytes]]":
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(f"ipc://{endpoint.path}")
        yield socket


def asked(endpoint: Endpoint, socket: "zmq.Socket[bytes]") -> bytes:
    """What comes in when somebody asks, again and again while it connects anew."""

    def ask() -> list[tuple[bytes, bytes]]:
        socket.send(b"asked")
        return endpoint.receive(1)

    return until(ask)[0][1]


def test_a_directory_that_was_deleted_is_made_again(endpoint: Endpoint) -> None:
    endpoint.hold()
    shutil.rmtree(os.path.dirname(endpoint.path))
    endpoint.hold()
    assert Path(key_path(endpoint.path)).read_text() == endpoint.key
    with connected(endpoint) as socket:
        assert asked(endpoint, socket) == b"asked"


def test_a_directory_that_somebody_planted_is_not_used(endpoint: Endpoint) -> None:
    endpoint.hold()
    folder = Path(endpoint.path).parent
    with connected(endpoint) as socket:
        assert asked(endpoint, socket) == b"asked"
        os.unlink(endpoint.path)
        os.unlink(key_path(endpoint.path))
        folder.chmod(0o777)
        with pytest.raises(OSError, match="can be entered by others"):
            endpoint.hold()
        assert list(folder.iterdir()) == []
        assert asked(endpoint, socket) == b"asked", "who watches goes on watching"
        folder.chmod(0o700)
        endpoint.hold()
        assert asked(endpoint, socket) == b"asked", "it has connected again"


def test_a_link_or_a_file_in_its_place_is_not_used(endpoint: Endpoint, tmp_path: Path) -> None:
    folder = Path(endpoint.path).parent
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    with pytest.raises(OSError, match="is not a directory"):
        endpoint.hold()
    folder.unlink()
    folder.write_text("")
    with pytest.raises(OSError, match="is not a directory"):
        endpoint.hold()
    assert list(elsewhere.iterdir()) == []
    folder.unlink()


def test_what_cannot_be_bound_is_an_oserror_and_no_harm_to_callers(tmp_path: Path) -> None:
    endpoint = Endpoint(str(tmp_path / ("x" * 120)))
    with pytest.raises(OSError, match="name too long"):
        endpoint.hold()
    assert endpoint.receive(1) == []
    endpoint.send(b"nobody", b"nothing")
    endpoint.close()


def test_only_sockets_that_nobody_holds_are_leftovers(endpoint: Endpoint) -> None:
    endpoint.hold()
    folder = Path(endpoint.path).parent
    with zmq.Context() as context:
        for name in ("dead.sock", "young.sock"):
            missing = context.socket(zmq.ROUTER)
            missing.bind(f"ipc://{folder}/aside")
            os.rename(folder / "aside", folder / name)
            missing.close(linger=0)
    (folder / "notes.txt").write_text("the user's own")
    (folder / "dead.key").write_text("of the dead one")
    (folder / "dead.1.trace").write_text("that its monitor never read")
    (folder / "1-1.snapshot").write_text("that a monitor is about to read")
    for name in ("dead.sock", "1-1.sock", "notes.txt"):
        found = (folder / name).stat()
        os.utime(folder / name, (found.st_atime, found.st_mtime - 2 * YOUNG_S))
    remove_leftovers(str(folder))
    left = ["1-1.key", "1-1.snapshot", "1-1.sock", "notes.txt", "young.sock"]
    assert sorted(path.name for path in folder.iterdir()) == left
    with connected(endpoint) as socket:
        assert asked(endpoint, socket) == b"asked"


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own, so that it can be full; skips where nobody may mount one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "gpuwatch-test", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


@pytest.mark.fault
def test_deleted_under_a_run(tmp_path: Path) -> None:
    with started(TRAINS_AFTER, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "waiting"
        endpoint = hello_of(run.pid).endpoint or ""
        path = Path(endpoint.removeprefix("ipc://"))
        until(path.exists)
        shutil.rmtree(path.parent)
        run.send()
        assert run.line() == bare()
        status, _, err = run.finish()
    assert (status, err) == (0, "")


@pytest.mark.fault
@pytest.mark.xdist_group("machine")
@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("spoilt", ["nr_inodes=1", "ro"])
def test_where_no_directory_can_be_made_there_is_another_place(
    tmp_path: Path, is_made: bool, spoilt: str
) -> None:
    script = "import probe, sys; probe.install(); sys.stdin.readline()"
    with small_disk(tmp_path / "disk", "mode=777,nr_inodes=9") as disk:
        if is_made and spoilt == "ro":
            (disk / f"gpuwatch-{os.getuid()}").mkdir(mode=0o700)
        remount(disk, spoilt)
        with started(script, tmp_path, TMPDIR=str(disk)) as run:
            endpoint = until(lambda: hello_of(run.pid).endpoint) or ""
            assert str(disk) not in endpoint
            with subscribed(endpoint) as next_reply:
                assert next_reply() is not None
            run.send()
            assert run.finish() == (0, "", "")


@pytest.mark.fault
@pytest.mark.xdist_group("machine")
def test_a_disk_that_is_full_shows_why_and_comes_back(tmp_path: Path) -> None:
    script = TRAIN.replace("import probe; probe.install()", HELD + "    import probe") + (
        "    probe.install(); print('waiting', flush=True); sys.stdin.readline(); print(train())\n"
        "    sys.stdout.flush(); sys.stdin.readline()\n"
    )
    with small_disk(tmp_path / "disk", "mode=777,nr_inodes=9") as disk:
        (disk / f"gpuwatch-{os.getuid()}").mkdir(mode=0o700)
        remount(disk, "nr_inodes=2")
        torchs_own = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch")}
        with started(script, tmp_path, HELD=str(disk), **torchs_own) as run:
            assert run.line() == "waiting"
            until(lambda: pages_of(run.pid) and hello_of(run.pid).fault)
            hello = hello_of(run.pid)
            assert hello.endpoint is None
            assert "No space left" in (hello.fault or "")
            assert "no socket" in (hello.fault or "")
            run.send()
            assert run.line() == bare()
            remount(disk, "rw,nr_inodes=9")
            until(lambda: hello_of(run.pid).endpoint)
            with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
                assert next_reply() is not None
            assert hello_of(run.pid).fault is None
            words = pages_of(run.pid)[0]
            assert words[page.WORD_STATE * 8] == page.STATE_ARMED
            run.send()
            status, _, err = run.finish()
    assert (status, err) == (0, "")


def test_a_socket_that_cannot_be_bound_again_is_none(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.hold()
    os.unlink(endpoint.path)

    def full(self: Endpoint) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Endpoint, "_bind", full)
    with pytest.raises(OSError, match="no space"):
        endpoint.hold()
    assert endpoint.receive(1) == []
    monkeypatch.undo()
    endpoint.hold()
    with connected(endpoint) as socket:
        assert asked(endpoint, socket) == b"asked"
