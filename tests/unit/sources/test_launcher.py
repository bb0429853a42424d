"""Who started a process, and its threads that pin batches: of real processes, and of files."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from gpuwatch.tui.model.observations import ProcessesSeen
from gpuwatch.tui.sources import launcher
from gpuwatch.tui.sources.launcher import FIND_NS, NUMBERS, Launcher, local_ranks
from gpuwatch.tui.sources.process import FIND_NS as FIND_PINS_NS
from gpuwatch.tui.sources.process import PinThreads, ProcessSource
from tests.unit.session.making import HELLO
from tests.unit.sources.test_cores import write

S = 1_000_000_000
LAUNCHES = """
import os, subprocess, sys, time
wait = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
both = [{"RANK": n, "LOCAL_RANK": n, "WORLD_SIZE": "2"} for n in "01"]
ranks = [*both, {}]
made = [
    subprocess.Popen(wait, env={**os.environ, **rank}, stdout=subprocess.PIPE) for rank in ranks
]
for one in made:
    one.stdout.readline()
print(*(one.pid for one in made), flush=True)
sys.stdin.read()
for one in made:
    one.kill()
"""


@contextmanager
def launched(**more: str) -> Iterator[tuple[int, list[int]]]:
    """A Python with three children, two of which are ranks; its pid and theirs."""
    plain = {name: value for name, value in os.environ.items() if name not in NUMBERS}
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=plain | more,
        text=True,
    ) as launcher:
        assert launcher.stdout is not None
        yield launcher.pid, [int(pid) for pid in launcher.stdout.readline().split()]
        assert launcher.stdin is not None
        launcher.stdin.close()


def test_the_launcher_and_the_other_ranks() -> None:
    with launched() as (pid, (zero, one, _)):
        found = Launcher(psutil.Process(zero))
        found.look(0)
        assert found.process is not None
        assert found.process.pid == pid
        assert [(rank.process.pid, rank.number) for rank in found.ranks] == [(one, 1)]
        source = ProcessSource(zero)
        source.open()
        (seen,) = source.poll(S)
    assert isinstance(seen, ProcessesSeen)
    assert [process.pid for process in seen.processes] == [zero], "they are not of its tree"
    assert [(use.role, use.pid, use.rank) for use in seen.around] == [
        ("launcher", pid, None),
        ("rank", one, 1),
    ]
    assert seen.processes[0].parent == pid


@pytest.mark.parametrize(
    "given",
    [
        {"RANK": "7"},
        {"RANK": "0"},
        {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"},
    ],
)
def test_what_the_launcher_itself_was_given_numbers_nobody_below_it(given: dict[str, str]) -> None:
    """A scheduler may number machines by it: 0 is the first of them, and the first rank."""
    with launched(**given) as (_, (zero, one, _)):
        seen = [Launcher(psutil.Process(pid)) for pid in (zero, one)]
        for found in seen:
            found.look(0)
        others = [[(rank.process.pid, rank.number) for rank in found.ranks] for found in seen]
    assert others == [[(one, 1)], [(zero, 0)]]


SRUN = {"SLURM_STEP_NUM_TASKS": "20", "SLURM_STEP_TASKS_PER_NODE": "8(x2),4"}


@pytest.mark.parametrize(
    ("environ", "here"),
    [
        ({"LOCAL_WORLD_SIZE": "2", **SRUN, "SLURM_NODEID": "0"}, 2),
        ({**SRUN, "SLURM_NODEID": "1"}, 8),
        ({**SRUN, "SLURM_NODEID": "2"}, 4),
        ({**SRUN, "SLURM_NODEID": "3"}, 20),
        (SRUN, 20),
        ({**SRUN, "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "8(x"}, 20),
        # A task for each node, whose launcher starts the ranks.
        ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "1(x3)"}, 20),
        ({}, 20),
    ],
)
def test_how_many_ranks_the_launcher_started_here(
    environ: dict[str, str], here: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "environ_of", lambda pid: environ)
    assert local_ranks(7, msgspec.structs.replace(HELLO, world_size=20)) == here


def test_this_monitor_is_no_launcher_and_a_search_is_not_repeated() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = Launcher(psutil.Process(child.pid))
        found.look(0)
        assert (found.process, found.ranks) == (None, ())
        child.kill()
        child.wait()
        found.look(FIND_NS - 1)
        found.look(FIND_NS)
        assert found.process is None, "the target is gone"


def thread(proc: Path, tid: int, name: str, ran_ns: int) -> None:
    write(proc / f"7/task/{tid}/comm", f"{name}\n")
    write(proc / f"7/task/{tid}/schedstat", f"{ran_ns} 5 9")


def test_the_threads_that_pin_are_found_by_their_name(tmp_path: Path) -> None:
    thread(tmp_path, 7, "python", 9 * S)
    thread(tmp_path, 8, "pt_data_pin", S)
    pins = PinThreads(7, tmp_path)
    assert pins.percent(S) is None, "nothing to compare with"
    thread(tmp_path, 8, "pt_data_pin", S + S // 4)
    thread(tmp_path, 9, "pt_data_pin", 0)
    assert pins.percent(2 * S) == pytest.approx(25)
    assert pins.percent(S + FIND_PINS_NS) == pytest.approx(0), "another one is found by now"
    thread(tmp_path, 9, "pt_data_pin", S // 2)
    assert pins.percent(2 * S + FIND_PINS_NS) == pytest.approx(50)


def test_without_one_there_is_no_figure(tmp_path: Path) -> None:
    thread(tmp_path, 7, "python", 9 * S)
    pins = PinThreads(7, tmp_path)
    assert [pins.percent(second * S) for second in (1, 2, 3)] == [None, None, None]
    assert PinThreads(8, tmp_path).percent(S) is None
