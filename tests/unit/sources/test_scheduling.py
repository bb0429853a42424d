"""Waiting for a core, from files like the kernel's and from this process's own."""

import mmap
import os
import time
from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import ProcessesSeen
from gpuwatch.tui.sources.process import ProcessSource
from gpuwatch.tui.sources.system import (
    NO_USE,
    QuotaUse,
    QuotaWatch,
    ThreadTimes,
    kernel_use,
    others_percent,
    quota_use_of,
    thread_times,
)
from tests.unit.sources.test_cores import process, write

S = 1_000_000_000
ME = os.getpid()
PAGES = 20_000


def schedstat(tmp_path: Path, text: str) -> Path:
    write(tmp_path / "7/task/7/schedstat", text)
    return tmp_path


def test_the_second_figure_is_the_wait_for_a_core(tmp_path: Path) -> None:
    reported = thread_times(7, schedstat(tmp_path, "548857730 690341 39"))
    assert reported == ThreadTimes(548_857_730, 690_341)


@pytest.mark.parametrize("text", ["0 0 0", "", "no such thing"])
def test_a_kernel_that_does_not_count_is_not_zero(tmp_path: Path, text: str) -> None:
    assert thread_times(7, schedstat(tmp_path, text)) == ThreadTimes()
    assert thread_times(8, tmp_path) == ThreadTimes()


def test_time_in_the_kernel_and_faults_are_the_main_threads(tmp_path: Path) -> None:
    fields = ["R", *map(str, range(1, 50))]
    fields[7], fields[12] = "5100", "25"
    write(tmp_path / "7/task/7/stat", f"7 (a name) (7) {' '.join(fields)}\n")
    used = kernel_use(7, tmp_path)
    assert used.in_kernel_s == pytest.approx(25 / os.sysconf("SC_CLK_TCK"))
    assert used.page_faults == 5_100
    write(tmp_path / "7/task/7/stat", "7 (python) R 1")
    assert kernel_use(7, tmp_path) == kernel_use(8, tmp_path) == NO_USE


def test_a_quota_of_version_two(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "0::/job/step"), tmp_path / "cgroup"
    write(root / "job/cpu.max", "200000 100000")
    write(root / "job/step/cpu.max", "50000 100000")
    write(
        root / "job/step/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 5\nthrottled_usec 7"
    )
    assert quota_use_of(ME, root, proc) == QuotaUse(7_000, 20, 5)


def test_a_quota_of_version_one_as_part_of_the_time(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "4:cpu:/job"), tmp_path / "cgroup"
    write(root / "cpu/job/cpu.cfs_quota_us", "50000")
    write(root / "cpu/job/cpu.cfs_period_us", "100000")
    watch = QuotaWatch(ME, root, proc)
    write(root / "cpu/job/cpu.stat", "nr_periods 20\nnr_throttled 5\nthrottled_time 1000")
    assert watch.percent(0) is None
    write(root / "cpu/job/cpu.stat", "nr_periods 40\nnr_throttled 25\nthrottled_time 920001000")
    assert watch.percent(2 * S) == pytest.approx(46)


def test_cores_that_stand_still_together_do_not_make_more_than_the_periods(tmp_path: Path) -> None:
    """Four cores held back for half of each of half of the periods: 200 % by the sum."""
    proc, root = process(tmp_path, "0::/job"), tmp_path / "cgroup"
    write(root / "job/cpu.max", "50000 100000")
    watch = QuotaWatch(ME, root, proc)
    write(root / "job/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0")
    watch.percent(0)
    write(root / "job/cpu.stat", "nr_periods 10\nnr_throttled 5\nthrottled_usec 2000000")
    assert watch.percent(S) == pytest.approx(50)


def test_without_a_quota_nothing_is_held_back(tmp_path: Path) -> None:
    proc, root = process(tmp_path, "0::/job"), tmp_path / "cgroup"
    write(root / "job/cpu.max", "max 100000")
    watch = QuotaWatch(ME, root, proc)
    assert watch.percent(0) is None
    assert watch.percent(S) is None


def test_what_others_use_is_what_the_own_tree_leaves() -> None:
    have = len(os.sched_getaffinity(0))
    assert others_percent(ME, 100.0, [60.0, 10.0]) == pytest.approx(100 * have - 70)
    assert others_percent(ME, 10.0, [200.0]) == 0.0
    assert others_percent(ME, 100.0, [60.0, None]) is None
    assert others_percent(ME, None, [60.0]) is None


@pytest.mark.skipif(thread_times(ME).ran_ns is None, reason="this kernel does not tell")
def test_a_look_at_this_process_shows_them() -> None:
    source = ProcessSource(ME)
    source.open()
    began_ns = time.perf_counter_ns()
    (first,) = source.poll(began_ns)
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as touched:
        touched[:: mmap.PAGESIZE] = bytes(PAGES)
    while time.perf_counter_ns() - began_ns < S / 4:
        pass
    (second,) = source.poll(time.perf_counter_ns())
    source.close()
    assert isinstance(first, ProcessesSeen)
    assert isinstance(second, ProcessesSeen)
    assert first.processes[0].run_delay_percent is None
    main = second.processes[0]
    assert main.run_delay_percent is not None
    assert main.cpu_percent is not None
    # It spun: what it did not run it waited for a core.
    assert main.run_delay_percent + main.cpu_percent > 80
    took_s = (second.t_ns - first.t_ns) / S
    # A process' CPU is counted in ticks, of which one may be missing at each end; a thread's in ns.
    ticks_percent = 2 * 100 / os.sysconf("SC_CLK_TCK") / took_s
    assert main.thread_cpu_percent is not None
    assert main.thread_cpu_percent <= main.cpu_percent + ticks_percent
    assert main.in_kernel_percent is not None
    assert 0 <= main.in_kernel_percent <= main.cpu_percent + ticks_percent
    assert main.page_faults_s is not None
    # Huge pages, where the kernel gives them to whoever does not ask, are 512 at once.
    assert main.page_faults_s * took_s > PAGES / 512
    assert first.others_cpu_percent is None
