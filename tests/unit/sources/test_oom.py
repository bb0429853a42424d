"""Whether the kernel killed for want of memory, from its counters alone."""

from pathlib import Path

import pytest

from gpuwatch.tui.model.observations import TargetEnded
from gpuwatch.tui.sources.oom import OomKill, OomWatch
from gpuwatch.tui.sources.process import with_memory

GIB = 1024**3


class Machine:
    """/proc and /sys/fs/cgroup of a kernel: a job's group, a process's group in it."""

    def __init__(self, folder: Path, version: int) -> None:
        self.root, self.proc, self.version = folder / "cgroup", folder / "proc", version
        self.job = self.root / ("memory/job" if version == 1 else "job")
        self.own = self.job / "step"
        self.own.mkdir(parents=True)
        (self.proc / "7").mkdir(parents=True)
        line = "4:memory:/job/step" if version == 1 else "0::/job/step"
        (self.proc / "7" / "cgroup").write_text(f"{line}\n")
        self.counts(self.own)
        self.counts(self.job)
        self.kills(0)

    def counts(
        self, group: Path, kills: int = 0, limits: int = 0, limit: "int | str" = 8 * GIB
    ) -> None:
        if self.version == 1:
            (group / "memory.oom_control").write_text(f"under_oom 0\noom_kill {kills}\n")
            (group / "memory.failcnt").write_text(f"{limits}\n")
            (group / "memory.limit_in_bytes").write_text(f"{limit}\n")
            return
        (group / "memory.events").write_text(f"low 0\nmax 3\noom {limits}\noom_kill {kills}\n")
        (group / "memory.max").write_text(f"{limit}\n")

    def kills(self, count: int) -> None:
        (self.proc / "vmstat").write_text(f"nr_free_pages 1\noom_kill {count}\n")

    def watch(self) -> OomWatch:
        return OomWatch(7, self.root, self.proc)


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, request.param)


def test_the_limit_of_its_own_group(machine: Machine) -> None:
    watch = machine.watch()
    machine.counts(machine.own, kills=1, limits=1, limit=2 * GIB)
    machine.counts(machine.job, kills=1, limits=1)
    machine.kills(1)
    assert watch.killed() == OomKill("limit", 2 * GIB)


def test_the_limit_of_the_job_around_it(machine: Machine) -> None:
    watch = machine.watch()
    machine.counts(machine.own, kills=1, limit="max")
    machine.counts(machine.job, kills=1, limits=1)
    assert watch.killed() == OomKill("limit", 8 * GIB)


def test_the_memory_of_the_machine(machine: Machine) -> None:
    watch = machine.watch()
    machine.counts(machine.own, kills=1)
    machine.kills(1)
    assert watch.killed() == OomKill("machine")


def test_who_was_killed_elsewhere_or_before_is_none_of_it(machine: Machine) -> None:
    machine.counts(machine.own, kills=3, limits=3)
    watch = machine.watch()
    machine.kills(1)
    assert watch.killed() is None, "somewhere else on the machine"
    machine.counts(machine.own, kills=4, limits=4)
    watch.look()
    assert watch.killed() is None, "a worker, and the process lived on"


def test_without_groups_the_machine_alone_reports(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2)
    (machine.proc / "7" / "cgroup").unlink()
    watch = machine.watch()
    assert watch.killed() is None
    machine.kills(1)
    assert watch.killed() == OomKill("machine")


def test_groups_that_ended_with_their_process_show_nothing(machine: Machine) -> None:
    machine.counts(machine.own, kills=2)
    watch = machine.watch()
    for name in ("memory.events", "memory.oom_control"):
        (machine.own / name).unlink(missing_ok=True)
    assert watch.killed() is None


@pytest.mark.parametrize(
    ("ended", "kill", "text"),
    [
        (TargetEnded(t_ns=0, signal=9), OomKill("limit", 8 * GIB),
         "was killed by the kernel: its memory limit of 8.0 GiB was reached (cgroup)"),
        (TargetEnded(t_ns=0), OomKill("limit"),
         "was killed by the kernel: its memory limit was reached (cgroup)"),
        (TargetEnded(t_ns=0, signal=9), OomKill("machine"),
         "was killed by the kernel: the memory of the machine was full"),
        (TargetEnded(t_ns=0, code=1), OomKill("machine"),
         "exited with code 1 (the kernel killed another process of it: the memory of the machine "
         "was full)"),
        (TargetEnded(t_ns=0, code=0), OomKill("machine"), "exited normally"),
        (TargetEnded(t_ns=0, signal=11), OomKill("machine"), "was killed (signal 11)"),
        (TargetEnded(t_ns=0, signal=9), None, "was killed (signal 9)"),
    ],
)  # fmt: skip
def test_the_words(ended: TargetEnded, kill: OomKill | None, text: str) -> None:
    assert with_memory(ended, kill).text == text
