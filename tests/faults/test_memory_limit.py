"""A real cgroup with a real limit: the kernel kills, and the monitor says what was full."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.command_line import TOY, environment, started

LIMIT_BYTES = 200 * 1024**2
FULL = (
    """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
"""
    + TOY.format(steps=50)
    + """
held = []
sys.stdin.readline()
while True:
    held.append(bytearray(os.urandom(1 << 20)))
"""
)

pytestmark = [pytest.mark.fault, pytest.mark.xdist_group("machine")]


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory cgroup of either version; skips where none can be made."""
    older = Path("/sys/fs/cgroup/memory")
    place = (older if older.is_dir() else Path("/sys/fs/cgroup")) / f"gpuwatch-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        pytest.skip("no cgroup can be made here")
    try:
        limit = "memory.limit_in_bytes" if older.is_dir() else "memory.max"
        try:
            (place / limit).write_text(str(LIMIT_BYTES))
        except OSError:
            pytest.skip("this cgroup takes no limit")
        yield place
    finally:
        place.rmdir()


def test_a_process_that_the_kernel_killed_for_memory(tmp_path: Path, group: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(FULL)
    with subprocess.Popen(
        [sys.executable, str(path), str(group / "cgroup.procs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert run.stdout.readline() == "armed\n"
        with started("attach", str(run.pid), "--json", "--no-stacks") as monitor:
            assert monitor.stdout is not None
            first = json.loads(monitor.stdout.readline())
            assert first["status"]["state"] != "ended"
            run.stdin.write("\n")
            run.stdin.flush()
            lines = monitor.stdout.readlines()
            assert monitor.wait(30) == 0
        assert run.wait(10) == -9
    ended = json.loads(lines[-1])["status"]["ended"]
    assert ended.startswith("was killed by the kernel: its memory limit of 200 MiB was reached")
