"""What the list and the picker find: real ranks below their launcher, and a GPU without a probe."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.tui.cli import main
from gpuwatch.tui.cli.main import with_candidates
from gpuwatch.tui.discovery import candidates
from gpuwatch.tui.discovery.candidates import Candidate, Launcher, find_candidates
from gpuwatch.tui.discovery.pids import find_watchable
from gpuwatch.tui.errors import NO_PROCESS, NoProcessError
from tests.integration.rank_processes import free_port, launched
from tests.processes.command_line import gpuwatch, toy


def test_ranks_stand_together_below_who_launched_them(tmp_path: Path) -> None:
    with toy(tmp_path) as alone, launched(tmp_path / "job", 2, 2, free_port()) as job:
        found = {one.pid: one for one in find_candidates()}
        table = gpuwatch("ls").stdout.splitlines()
    ranks = [found[pid] for pid in job.pids]
    assert [one.rank for one in ranks] == ["0/2", "1/2"]
    assert {one.launcher for one in ranks} == {Launcher(job.launcher.pid, "launch.py")}
    assert found[alone.pid].launcher is None
    at = next(at for at, line in enumerate(table) if line.split()[0] == str(job.launcher.pid))
    assert "launch.py" in table[at]
    assert {line.split()[0] for line in table[at + 1 : at + 3]} == {str(pid) for pid in job.pids}
    assert all("  train.py" in line for line in table[at + 1 : at + 3])


def missing() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_who_types_a_pid_that_has_ended_is_shown_a_run_on_a_gpu_without_a_probe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "print(flush=True); input()"]
    monkeypatch.setattr(main, "end_on_signals", lambda: None)
    monkeypatch.setattr(candidates, "find_probes", list)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        monkeypatch.setattr(candidates, "has_opened_driver", lambda pid: pid == holder.pid)
        monkeypatch.setattr(candidates, "maps_torch", lambda _: False)
        code = main.main(["attach", str(pid := missing()), "--once"])
        holder.kill()
    assert code == NO_PROCESS
    assert capsys.readouterr().err.splitlines() == [
        f"gpuwatch: no process {pid}",
        f"Processes that can be watched now: {holder.pid} (-c)",
        "See: gpuwatch ls",
    ]


def test_where_nothing_else_can_be_watched_and_where_the_error_shows_more_it_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "find_probes", list)
    monkeypatch.setattr(candidates, "has_opened_driver", lambda _: False)
    monkeypatch.setattr(candidates, "maps_torch", lambda _: False)
    alone = with_candidates(NoProcessError("no process 7", fix="See: gpuwatch ls"))
    assert str(alone) == "gpuwatch: no process 7\nSee: gpuwatch ls"
    several = NoProcessError("no process 7 here", "In containers: 8, 9", "Try: gpuwatch attach 8")
    assert with_candidates(several) is several


def test_no_other_process_is_looked_into_for_a_hint_that_may_not_be_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pid that is gone here may be one inside a container."""
    monkeypatch.setattr(candidates, "find_probes", lambda: pytest.fail("it looked"))
    with pytest.raises(NoProcessError):
        find_watchable(missing())


def test_a_python_process_with_a_gpu_and_no_probe_is_named_and_its_workers_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = (
        "import os, time\nchild = os.fork()\nif child: print(child, flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-c", script]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder,
        subprocess.Popen(["sleep", "60"]) as other,
    ):
        assert holder.stdout is not None
        worker = int(holder.stdout.readline())
        holding = {holder.pid, worker, other.pid}
        monkeypatch.setattr(candidates, "has_opened_driver", lambda pid: pid in holding)
        found = [one for one in find_candidates() if one.pid in holding]
        for process in (holder, other):
            process.kill()
        subprocess.run(["kill", str(worker)], check=True)
    assert [one.pid for one in found] == [holder.pid]
    assert found[0].found is None
    assert found[0].steps == "no probe"


def test_a_run_on_the_cpu_without_a_probe_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as trains:
        assert trains.stdout is not None
        assert trains.stdout.readline()
        monkeypatch.setattr(candidates, "maps_torch", lambda pid: pid == trains.pid)
        (found,) = [one for one in find_candidates() if one.pid == trains.pid]
        trains.kill()
    assert (found.steps, found.gpu) == ("no probe", "-")
    assert found.started_unix is not None


def test_rows_of_one_script_show_the_arguments_and_folders_that_differ(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time; print(flush=True); time.sleep(60)")
    folders = [tmp_path / name for name in ("a", "b")]
    runs = []
    for folder, lr in zip(folders, ("3e-4", "1e-3"), strict=True):
        folder.mkdir()
        command = [sys.executable, str(script), "--epochs", "3", "--lr", lr]
        runs.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE))
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline()
    made = [Candidate(run.pid, "ana", "train.py", None) for run in runs]
    rows = candidates.disambiguated(candidates.described(one) for one in made)
    for run in runs:
        run.kill()
        run.communicate()
    assert [one.arguments for one in rows] == [("--lr 3e-4",), ("--lr 1e-3",)]
    assert rows[0].label == f"train.py --lr 3e-4 in {folders[0]}"
    assert rows[1].folder == str(folders[1])
