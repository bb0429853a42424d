"""Whom a process has started, found without reading the whole machine each time."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gpuwatch.tui.sources.system import Descendants

SHELL = 'while read line; do sh -c "sleep 60 & echo \\$!; wait" & done'
"""For each line that it reads it starts a shell with a child, and says the child's pid."""


@pytest.fixture
def shell() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        ["sh", "-c", SHELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        below = psutil.Process(process.pid).children(recursive=True)
        for one in below:
            one.kill()
        process.kill()


def start(shell: "subprocess.Popen[str]") -> int:
    """The pid of a grandchild that runs now."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    print(file=shell.stdin, flush=True)
    return int(shell.stdout.readline())


def pids(found: list[psutil.Process]) -> list[int]:
    return sorted(one.pid for one in found)


def everyone(shell: "subprocess.Popen[str]") -> list[int]:
    return pids(psutil.Process(shell.pid).children(recursive=True))


def test_children_and_theirs_as_they_come_and_go(shell: "subprocess.Popen[str]") -> None:
    below = Descendants(shell.pid)
    assert below.look() == []
    first = start(shell)
    assert pids(below.look()) == everyone(shell)
    second = start(shell)
    found = below.look()
    assert pids(found) == everyone(shell)
    assert {first, second} <= set(pids(found))
    psutil.Process(second).kill()
    psutil.wait_procs([one for one in found if one.pid == second], 5)
    assert pids(below.look()) == everyone(shell)
    assert second not in pids(below.look())


def test_a_process_stays_the_same_object_which_remembers_its_times(
    shell: "subprocess.Popen[str]",
) -> None:
    below = Descendants(shell.pid)
    start(shell)
    (first, second), again = below.look(), below.look()
    assert again[0] is first
    assert again[1] is second


def test_of_the_others_only_those_that_are_new_are_read(
    shell: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    below = Descendants(shell.pid)
    ours = {start(shell)}
    ours.add(psutil.Process(*ours).ppid())
    read: list[int] = []
    parent_of = Descendants._parent

    def noted(self: Descendants, pid: int) -> int | None:
        read.append(pid)
        return parent_of(self, pid)

    monkeypatch.setattr(Descendants, "_parent", noted)
    before = psutil.pids()
    below.look()
    assert ours <= set(read)
    read.clear()
    below.look()
    assert set(read) & set(before) == ours


def test_a_child_whose_parent_ended_is_somebody_else_s(shell: "subprocess.Popen[str]") -> None:
    below = Descendants(shell.pid)
    grandchild = psutil.Process(start(shell))
    assert grandchild.pid in pids(below.look())
    parent = grandchild.parent()
    assert parent is not None
    parent.kill()
    while grandchild.ppid() == parent.pid:
        assert parent.is_running()
    assert grandchild.pid not in pids(below.look())
    grandchild.kill()


def test_a_process_of_which_only_the_number_is_left_counts_for_nobody(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    assert Descendants(1, proc=tmp_path).look() == []
