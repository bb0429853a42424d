"""Where the socket lies: what may be in the way of it, and what is left as it was."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gpuwatch.probe.socket_place import LONGEST_PATH, NAMES, make_safe, socket_path
from tests.processes.command_line import environment

OWN = f"gpuwatch-{os.getuid()}"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TEMP", "TMP", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def folder() -> Path:
    return Path(socket_path(1, 2)).parent


def test_it_lies_below_the_directory_for_temporary_files(temporary: Path) -> None:
    assert folder() == temporary / OWN


def test_the_program_may_still_choose_its_directory_afterwards(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tempfile.gettempdir` keeps its first answer."""
    socket_path(1, 2)
    (temporary / "later").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary / "later"))
    assert tempfile.gettempdir() == str(temporary / "later")


def test_a_directory_that_the_program_chose_counts(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "chosen").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "chosen"))
    assert folder() == temporary / "chosen" / OWN


def test_names_that_others_have_taken_are_passed_over(temporary: Path) -> None:
    (temporary / OWN).write_text("")
    assert folder() == temporary / f"{OWN}-2"
    (temporary / f"{OWN}-2").chmod(0o777)
    assert folder() == temporary / f"{OWN}-3"
    (temporary / f"{OWN}-3").rmdir()
    (temporary / f"{OWN}-3").symlink_to(temporary)
    assert folder() == Path("/tmp") / OWN


def test_a_long_directory_is_passed_over(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = temporary / ("x" * LONGEST_PATH)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    assert folder() == Path("/tmp") / OWN
    assert list(long.iterdir()) == []


def test_a_run_under_another_umask_does_not_lock_the_next_one_out(temporary: Path) -> None:
    before = os.umask(0o177)
    try:
        assert folder() == temporary / OWN
    finally:
        os.umask(before)
    assert (temporary / OWN).stat().st_mode & 0o777 == 0o700
    (temporary / OWN).chmod(0o600)
    make_safe(str(temporary / OWN))
    assert (temporary / OWN).stat().st_mode & 0o777 == 0o700


def test_nothing_is_made_in_the_working_directory(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be written: as far as the probe knows, a file is in each place."""
    monkeypatch.chdir(temporary)
    monkeypatch.setattr(os, "mkdir", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only")))
    with pytest.raises(OSError, match=r"Read-only|No such file"):
        socket_path(1, 2)
    assert list(temporary.iterdir()) == []


def test_the_runtime_directory_comes_after_all_others(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = temporary / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr("gpuwatch.probe.socket_place._temporary", lambda: [str(temporary)])
    for name in NAMES:
        (temporary / name.format(uid=os.getuid())).write_text("")
    assert folder() == runtime / "gpuwatch"


def test_installing_leaves_tempfile_as_it_was(temporary: Path) -> None:
    code = (
        "import os, tempfile, probe; probe.install()\n"
        "os.environ['TMPDIR'] = '/var/tmp'\n"
        "print(tempfile.gettempdir())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout == "/var/tmp\n"
