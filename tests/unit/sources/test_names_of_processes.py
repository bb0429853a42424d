"""A process whose name is no UTF-8: the kernel cuts names off after 15 bytes, within a letter."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from gpuwatch.tui.discovery.candidates import Candidate, described
from gpuwatch.tui.discovery.command_lines import has_torch, maps_torch
from gpuwatch.tui.discovery.pids import find_watchable
from gpuwatch.tui.discovery.targets import own_page, pids_inside, python_of, script_of_process
from gpuwatch.tui.model.observations import ProcessesSeen, TargetEnded
from gpuwatch.tui.sources.nvml import _name_of, host_engine
from gpuwatch.tui.sources.process import ProcessSource, resident_file_bytes

CODE = """
import ctypes, mmap, sys
ctypes.CDLL(None).prctl(15, "обучение".encode()[:15], 0, 0, 0)
with open(sys.argv[1].encode("utf-8", "surrogateescape"), "r+b") as file:
    held = mmap.mmap(file.fileno(), 0)  # a dataset with a name of another age
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def pid(tmp_path: Path) -> Iterator[int]:
    data = bytes(tmp_path) + b"/donn\xe9es.bin"
    with open(data, "wb") as file:
        file.write(b"data")
    with subprocess.Popen(
        [sys.executable, "-c", CODE, data], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_it_is_watched_to_its_end(pid: int) -> None:
    source = ProcessSource(pid)
    source.open()
    for now_ns in (1, 1_000_000_001):
        (seen,) = source.poll(now_ns)
        assert isinstance(seen, ProcessesSeen)
        assert seen.processes[0].name == "обучени?"
        assert seen.processes[0].file_bytes is not None
        msgspec.json.encode(seen)
    psutil.Process(pid).kill()
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        pass
    (ended,) = source.poll(2_000_000_001)
    assert isinstance(ended, TargetEnded)
    assert ended.signal == 9


def test_it_is_found_and_described(pid: int) -> None:
    assert pids_inside(pid) == [pid]
    assert own_page(pid) is None
    assert (maps_torch(pid), has_torch(Path(f"/proc/{pid}/maps"))) == (False, False)
    assert python_of(pid) == sys.version_info[:2]
    assert find_watchable(pid).pid == pid
    one = described(Candidate(pid, "root", script_of_process(psutil.Process(pid)), None))
    msgspec.json.encode((one.script, one.arguments, one.folder))
    assert one.arguments[-1].endswith("donn?es.bin")


def test_beside_a_gpu_it_hides_nothing(pid: int) -> None:
    host_engine()
    assert _name_of(pid).startswith("обучени")
    assert resident_file_bytes(pid) is not None
