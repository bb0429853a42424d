"""A run of py-spy leaves no descriptor behind, whichever way it goes."""

import os
from pathlib import Path

import pytest

from gpuwatch.tui.sources.py_spy import PySpy


def held() -> set[tuple[str, str]]:
    """(number, file) of what this process has open; the listing's own is closed by then."""
    return {
        (fd, os.readlink(f"/proc/self/fd/{fd}"))
        for fd in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{fd}")
    }


def test_of_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    before = held()
    with pytest.raises(FileNotFoundError):
        PySpy(str(tmp_path / "gone"), os.getpid(), subprocesses=False)
    assert held() == before


def test_of_one_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    before = held()
    run = PySpy(str(program), os.getpid(), subprocesses=False)
    assert held() > before
    run.kill()
    assert run.process.stdout is not None, "held here, so that no collection closes it"
    assert held() == before


@pytest.mark.parametrize(("seconds", "rate", "pause_us"), [(2, 10, 100_000), (1, 20, 50_000)])
def test_a_chunk_that_is_wanted_soon_has_as_many_samples(
    tmp_path: Path, seconds: int, rate: int, pause_us: int
) -> None:
    program = tmp_path / "py-spy"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    run = PySpy(str(program), os.getpid(), subprocesses=False, seconds=seconds)
    run.process.wait()
    ran = run.ended()
    assert ran is not None
    assert f"--rate {rate} --duration {seconds} " in ran.stderr
    assert run.pause_us == pause_us
