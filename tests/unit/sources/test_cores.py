"""cgroup limits, from files like the kernel's."""

import os
from pathlib import Path

from gpuwatch.tui.sources.system import MemoryLimit, cores_of, memory_of

MACHINE = MemoryLimit(1000, 800)


def process(tmp_path: Path, line: str) -> Path:
    proc = tmp_path / "proc"
    (proc / str(os.getpid())).mkdir(parents=True)
    (proc / str(os.getpid()) / "cgroup").write_text(line + "\n")
    return proc


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_the_tightest_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "0::/job/step"), tmp_path / "cgroup"
    write(root / "job/step/cpu.max", "max 100000")
    write(root / "job/cpu.max", "50000 100000")
    assert cores_of(os.getpid(), root, proc) == 0.5


def test_version_one_quotas(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "4:cpu,cpuacct:/job"), tmp_path / "cgroup"
    write(root / "cpu,cpuacct/job/cpu.cfs_quota_us", "25000")
    write(root / "cpu,cpuacct/job/cpu.cfs_period_us", "100000")
    assert cores_of(os.getpid(), root, proc) == 0.25


def test_without_a_quota_it_is_the_affinity(tmp_path: Path) -> None:
    proc = process(tmp_path, "0::/")
    assert cores_of(os.getpid(), tmp_path, proc) == len(os.sched_getaffinity(0))


def test_memory_is_the_smaller_of_machine_and_cgroup(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "0::/job"), tmp_path / "cgroup"
    write(root / "job/memory.max", "500")
    write(root / "job/memory.current", "450")
    assert memory_of(os.getpid(), MACHINE, root, proc) == MemoryLimit(500, 50)
    write(root / "job/memory.stat", "anon 150\nactive_file 100\ninactive_file 200")
    assert memory_of(os.getpid(), MACHINE, root, proc) == MemoryLimit(500, 250)
    write(root / "job/memory.max", "max")
    assert memory_of(os.getpid(), MACHINE, root, proc) == MACHINE
