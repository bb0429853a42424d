"""Memory that is a mapped file, and memory that is held: distinguished by both who look."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.probe.figures import resident_bytes
from gpuwatch.tui.sources.process import proportional_bytes, resident_file_bytes

MIB = 1024**2
MAPPED = 48 * MIB

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="Linux alone shows what files hold"
)


def by_the_probe() -> tuple[int, int]:
    total, files = resident_bytes()
    assert total is not None
    assert files is not None
    return total, files


def by_the_monitor() -> tuple[int, int]:
    files = resident_file_bytes(os.getpid())
    assert files is not None
    return by_the_probe()[0], files


def of_a_worker() -> tuple[int, int]:
    total, files = proportional_bytes(os.getpid())
    assert total is not None
    assert files is not None
    return total, files


LOOKS = [by_the_probe, by_the_monitor, of_a_worker]


@pytest.mark.parametrize("look", LOOKS)
def test_a_mapped_file_is_pages_of_a_file(
    look: Callable[[], tuple[int, int]], tmp_path: Path
) -> None:
    path = tmp_path / "tokens.bin"
    path.write_bytes(os.urandom(MIB) * 48)
    total, files = look()
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert sum(data[at] for at in range(0, MAPPED, 4096)) > 0
        total_mapped, files_mapped = look()
    assert files_mapped - files == pytest.approx(MAPPED, abs=4 * MIB)
    assert (total_mapped - files_mapped) - (total - files) == pytest.approx(0, abs=8 * MIB)


@pytest.mark.parametrize("look", LOOKS)
def test_shared_memory_is_held(look: Callable[[], tuple[int, int]]) -> None:
    """Batches of workers come in it: a list of them is a leak."""
    total, files = look()
    with mmap.mmap(-1, MAPPED) as data:
        for at in range(0, MAPPED, 4096):
            data[at] = 1
        total_held, files_held = look()
    assert (total_held - files_held) - (total - files) == pytest.approx(MAPPED, abs=8 * MIB)


def test_a_process_that_has_ended() -> None:
    assert resident_file_bytes(999_999_999) is None
    assert proportional_bytes(999_999_999) == (None, None)
