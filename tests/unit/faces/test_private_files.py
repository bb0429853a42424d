"""What we write is its owner's alone, whatever was there and whatever the umask says."""

import errno
import os
import resource
import signal
from pathlib import Path

import pytest

from gpuwatch.tui.formats.files import export
from gpuwatch.tui.private_files import only_ours, write_whole

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")


def written(path: Path, mode: str = "wb") -> int:
    """The mode of the file."""
    with open(path, mode, opener=only_ours) as file:
        file.write(b"new")
    return path.stat().st_mode & 0o777


def test_a_new_file_and_one_that_others_could_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert written(tmp_path / "new", "xb") == 0o600
        (tmp_path / "old").write_text("some longer text")
        (tmp_path / "old").chmod(0o666)
        assert written(tmp_path / "old") == 0o600
        assert (tmp_path / "old").read_bytes() == b"new"
        with pytest.raises(FileExistsError):
            written(tmp_path / "old", "xb")
        (path,) = export({".txt": "report"}, "run", tmp_path).paths
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("new", [True, False])
def test_what_finds_no_room_leaves_no_file(tmp_path: Path, new: bool) -> None:
    """An empty page, or half a trace, looks like one. A limit on files stands for a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            write_whole(tmp_path / "page.html", bytes(100_000), new)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_where_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("an older and longer page")
    with pytest.raises(FileExistsError):
        write_whole(path, b"new", new=True)
    assert path.read_text() == "an older and longer page"
    write_whole(path, b"new", new=False)
    assert path.read_bytes() == b"new"


def test_devices_stay_what_they_are() -> None:
    mode = os.stat("/dev/null").st_mode
    with open("/dev/null", "wb", opener=only_ours) as file:
        file.write(b"x")
    assert os.stat("/dev/null").st_mode == mode


@needs_root
def test_a_file_or_link_of_another_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("kept")
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    (tmp_path / "ours").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    for name in ("theirs", "link"):
        with pytest.raises(PermissionError, match=r"of user|to user"):
            written(tmp_path / name)
    assert [(tmp_path / one).read_text() for one in ("theirs", "ours")] == ["kept", "kept"]
    (tmp_path / "own").symlink_to(tmp_path / "ours")
    assert written(tmp_path / "own") == 0o600
