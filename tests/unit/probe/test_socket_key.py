"""The key beside the socket: whose it is, when it is there, and that it fits nothing else."""

import os
from pathlib import Path

import pytest

from gpuwatch.probe.endpoint import Endpoint
from gpuwatch.probe.socket_place import is_key, key_path, make_key, write_key


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "held" / "1-1.sock")


def test_it_is_there_with_the_socket_and_goes_with_it(path: str) -> None:
    endpoint = Endpoint(path)
    before = os.umask(0)
    try:
        endpoint.hold()
    finally:
        os.umask(before)
    key = Path(key_path(path))
    assert key.read_text() == endpoint.key
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    endpoint.hold()
    assert key.read_text() == endpoint.key, "a monitor may come at any time"
    endpoint.close()
    assert not list(Path(path).parent.iterdir())


def test_what_lies_in_its_place_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    path = str(tmp_path / "1-1.sock")
    (tmp_path / "theirs").write_text("kept")
    for name in ("1-1.key", "1-1.key.new"):
        (tmp_path / name).symlink_to(tmp_path / "theirs")
    write_key(path, "a key")
    assert (tmp_path / "theirs").read_text() == "kept"
    assert (tmp_path / "1-1.key").read_text() == "a key"
    assert not (tmp_path / "1-1.key").is_symlink()


def test_each_socket_has_its_own() -> None:
    keys = {make_key() for _ in range(100)}
    assert len(keys) == 100
    for key in keys:
        assert is_key(key, key)
        for other in ("", key[:-1], key + "0", key.upper() + "G", "\N{SNAKE}" * 8, "\ud800" * 32):
            assert not is_key(other, key)
