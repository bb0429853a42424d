"""Which process a pid means: on real processes, with real namespaces."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gpuwatch.tui.cli.export import NamedJob
from gpuwatch.tui.discovery.pids import find_watchable, watched_now
from gpuwatch.tui.discovery.sockets import open_socket
from gpuwatch.tui.discovery.targets import pids_inside
from gpuwatch.tui.errors import NoProcessError, NothingToMeasureError, NotPermittedError
from tests.integration.unprobed import running, toy
from tests.processes.command_line import environment, gpuwatch
from tests.processes.command_line import toy as probed
from tests.processes.monitored import until

RANKS = """
import subprocess
for rank in {ranks}:
    if "RANK" not in os.environ:
        subprocess.Popen([sys.executable, {script!r}], env={{**os.environ, "RANK": str(rank)}})
"""
WORKER = """
worker = os.fork()
if worker == 0:
    open("/proc/self/comm", "w").write("pt_data_worker")
"""


SPAWNS = """
import mmap, multiprocessing, os, threading, time
with open({library!r}, "rb") as file:
    torch = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
{join}
def spawned():
    {does}
    os.write(1, b"here %d\\n" % os.getpid())
    time.sleep(600)

if __name__ == "__main__":
    {first}
    context = multiprocessing.get_context({context!r})
    both = [context.Process(target=spawned) for _ in range(2)]
    for one in both:
        one.start()
        time.sleep(0.05)
    time.sleep(600)
"""
PLAIN = """
import os, time
os.write(1, b"here %d\\n" % os.getpid())
time.sleep(600)
"""
JOINS = "threading.Thread(target=join, daemon=True).start()"
JOIN = """
def join():
    path = f"/proc/self/task/{threading.get_native_id()}/comm"
    open(path, "w").write("pt_gloo_runloop")
    time.sleep(600)
"""
"""What init_process_group leaves to be seen."""
TRAINS = (
    "import probe; from gpuwatch.probe import api; probe.install(); api._installed.recorder.mark(6)"
)
"""A first backward (`probe.wire.marks.BACKWARD_ENTER`): what is spawned is watched from there."""


def can_unshare() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    command = [program, "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_python_process_without_a_probe_is_opened_as_it_is(tmp_path: Path) -> None:
    with running([sys.executable, str(toy(tmp_path))]) as (process, _):
        found = find_watchable(process.pid)
    assert (found.pid, found.page, found.notes) == (process.pid, None, ())
    assert found.script == "train.py"


def test_a_shell_opens_the_one_training_below_it(tmp_path: Path) -> None:
    command = f"{sys.executable} {toy(tmp_path)} & wait"
    with running(["sh", "-c", command]) as (shell, (pid,)):
        found = find_watchable(shell.pid)
    assert found.pid == pid
    assert found.notes[0].startswith(f"{shell.pid} (sh) has {pid} (train.py) below it")


def test_a_shell_with_two_trainings_names_them(tmp_path: Path) -> None:
    script = toy(tmp_path)
    command = f"{sys.executable} {script} & {sys.executable} {script} & wait"
    with (
        running(["sh", "-c", command], lines_first=2) as (shell, pids),
        pytest.raises(NothingToMeasureError) as error,
    ):
        find_watchable(shell.pid)
    assert all(f"{pid} (train.py)" in str(error.value) for pid in pids)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_tmux_opens_the_one_training_in_it(tmp_path: Path) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    output = tmp_path / "output"
    command = f"{sys.executable} {toy(tmp_path)} > {output}"
    try:
        subprocess.run([*tmux, "new-session", "-d", command], check=True, env=environment())
        until(lambda: output.exists() and output.read_text().endswith("\n"))
        reported = subprocess.run(
            [*tmux, "display-message", "-p", "#{pid}"], capture_output=True, text=True, check=True
        )
        found = find_watchable(int(reported.stdout))
        assert found.pid == int(output.read_text().split()[1])
        assert "(train.py) below it" in found.notes[0]
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


@pytest.mark.slow
def test_torchrun_opens_its_first_rank_and_each_rank_itself(tmp_path: Path) -> None:
    """The launcher is the real one; its ranks join nobody."""
    module = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with running([*module, str(toy(tmp_path))], lines_first=2) as (launcher, pids):
        found = find_watchable(launcher.pid)
        assert sorted(find_watchable(pid).pid for pid in pids) == sorted(pids)
    assert found.pid in pids
    assert f"started 2 ranks: watching rank 0, pid {found.pid}" in found.notes[0]
    assert found.script == "train.py"


def test_a_launcher_opens_its_first_rank_and_names_the_others(tmp_path: Path) -> None:
    rank = toy(tmp_path)
    script = toy(tmp_path, "launch.py", RANKS.format(ranks=(1, 0), script=str(rank)))
    with running([sys.executable, str(script)], lines_first=3) as (launcher, pids):
        found = find_watchable(launcher.pid)
        environs = {pid: Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in pids}
    ranks = {pid for pid, words in environs.items() if b"RANK=0" in words}
    others = {pid for pid, words in environs.items() if b"RANK=1" in words}
    assert {found.pid} == ranks
    assert f"watching rank 0, pid {found.pid}" in found.notes[0]
    assert f"rank 1 is {others.pop()}" in found.notes[1]


def test_a_script_that_starts_itself_anew_for_the_other_ranks_is_rank_0(tmp_path: Path) -> None:
    own = str(tmp_path / "train.py")
    script = toy(tmp_path, more=RANKS.format(ranks=(1,), script=own))
    with running([sys.executable, str(script)], lines_first=2) as (first, pids):
        (second,) = set(pids) - {first.pid}
        assert find_watchable(first.pid).pid == first.pid
        assert find_watchable(second).pid == second


@contextmanager
def spawning(
    folder: Path,
    does: str,
    first: str = "",
    lines_first: int = 2,
    context: str = "spawn",
    **more: str,
) -> Iterator[tuple[int, list[int]]]:
    """A process and the pids of the two that it has spawned, and of what they say, in the order in
    which they were started."""
    library = folder / "libtorch.so"
    library.write_bytes(b"\0" * 4096)
    script = folder / "train.py"
    how = {"does": does, "first": first or "pass", "join": JOIN, "context": context}
    text = SPAWNS.format(library=str(library), **how)
    script.write_text(text)
    with running([sys.executable, str(script)], lines_first=lines_first, **more) as (parent, pids):
        yield parent.pid, sorted(pids, key=lambda pid: psutil.Process(pid).create_time())


@pytest.mark.parametrize(
    ("does", "first"), [(JOINS, ""), (TRAINS, "import probe; probe.install()")]
)
def test_who_spawned_ranks_opens_the_first_of_them(tmp_path: Path, does: str, first: str) -> None:
    """As torch.multiprocessing.spawn does: nothing outside them says that they are ranks."""
    with spawning(tmp_path, does, first) as (parent, ranks):
        until(lambda: len(find_watchable(parent).notes) == 2)
        found = find_watchable(parent)
        assert found.pid == ranks[0]
        themselves = [find_watchable(pid).pid for pid in ranks]
    assert f"started 2 ranks: watching rank 0, pid {ranks[0]}" in found.notes[0]
    assert f"rank 1 is {ranks[1]}" in found.notes[1]
    assert themselves == ranks
    assert found.script == "train.py", "not the words that spawned it"


def test_who_forks_trainings_opens_the_first_of_them(tmp_path: Path) -> None:
    """As A3C's workers, which have their parent's own command line."""
    first = "import probe; probe.install()"
    with spawning(tmp_path, TRAINS, first, context="fork") as (parent, forks):
        assert until(lambda: find_watchable(parent).pid == forks[0])
        assert watched_now(parent, parent) == forks[0]
        assert [find_watchable(pid).pid for pid in forks] == forks


def test_a_fork_that_does_not_train_is_its_parents(tmp_path: Path) -> None:
    first = "import probe; probe.install()"
    with spawning(tmp_path, "pass", first, context="fork") as (parent, _):
        assert find_watchable(parent).pid == parent
        assert watched_now(parent, parent) == parent


@pytest.mark.parametrize(
    ("does", "first"),
    [(JOINS, ""), (f"os.environ['RANK'] = RANK; {TRAINS}", "import probe; probe.install()")],
)
def test_who_has_a_rank_of_its_own_and_spawns_more_opens_the_first_of_those(
    tmp_path: Path, does: str, first: str
) -> None:
    """Where a scheduler numbers machines by RANK, all that is spawned there inherits it."""
    rank = "multiprocessing.current_process().name[-1]"  # "SpawnProcess-1" and on
    does = does.replace("= RANK", f"= {rank}")
    with spawning(tmp_path, does, first, RANK="0", WORLD_SIZE="1") as (parent, ranks):
        until(lambda: len(find_watchable(parent).notes) == 2)
        found = find_watchable(parent)
        assert [find_watchable(pid).pid for pid in ranks] == ranks
    assert found.pid == ranks[0]
    assert "started 2 ranks: watching rank" in found.notes[0]


def test_a_spawned_rank_that_was_taken_for_a_worker_is_meant_once_it_trains(tmp_path: Path) -> None:
    """It reads its data first, say. An exporter of one of them then has all of its job."""
    numbers = "os.environ['RANK'] = multiprocessing.current_process().name[-1]"
    trains = f"{numbers}; os.environ['WORLD_SIZE'] = '2'; {TRAINS}"
    later = f"import signal; signal.signal(signal.SIGUSR1, lambda *_: exec({trains!r}))"
    with spawning(tmp_path, later) as (parent, ranks):
        assert {find_watchable(pid).pid for pid in ranks} == {parent}
        assert [watched_now(pid, parent) for pid in (parent, *ranks)] == [parent] * 3
        exported = NamedJob(ranks[1], parent)
        assert exported.here() == [parent]
        for pid in ranks:
            os.kill(pid, signal.SIGUSR1)
        assert until(lambda: [watched_now(pid, parent) for pid in ranks] == ranks)
        assert until(lambda: watched_now(parent, parent) == ranks[0])
        assert until(lambda: watched_now(ranks[1], ranks[0]) == ranks[0]), "who is at work stays"
        assert until(lambda: exported.here() == sorted(ranks))


@pytest.mark.parametrize("more", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_spawned_workers_open_who_spawned_them(tmp_path: Path, more: dict[str, str]) -> None:
    with spawning(tmp_path, "pass", "", 2, **more) as (parent, workers):
        assert [find_watchable(pid).pid for pid in (parent, *workers)] == [parent] * 3


@pytest.mark.parametrize("name", ["pt_data_worker", "python"])
def test_a_worker_of_a_spawned_rank_opens_it(tmp_path: Path, name: str) -> None:
    """The rank has set its own number; what the worker was started with is the scheduler's. Older
    versions of torch name no worker."""
    rank = "os.environ['RANK'] = multiprocessing.current_process().name[-1]"
    fork = f"os.fork() or open('/proc/self/comm', 'w').write({name!r})"
    does = f"{rank}; {TRAINS}; {fork}"
    with spawning(tmp_path, does, lines_first=4, RANK="0", WORLD_SIZE="1") as (parent, pids):
        above = {pid: psutil.Process(pid).ppid() for pid in pids}
        workers = [pid for pid in pids if above[pid] != parent]
        assert [find_watchable(pid).pid for pid in workers] == [above[pid] for pid in workers]
    assert len(workers) == 2


def test_a_worker_opens_its_parent(tmp_path: Path) -> None:
    script = toy(tmp_path, more=WORKER)
    with running([sys.executable, str(script)], lines_first=2) as (parent, pids):
        (worker,) = set(pids) - {parent.pid}
        found = find_watchable(worker)
        itself = find_watchable(parent.pid)
    assert found.pid == itself.pid == parent.pid
    assert found.notes == (f"{worker} is a worker of {parent.pid}: watching {parent.pid}",)


def test_a_shell_above_a_probe_opens_it(tmp_path: Path) -> None:
    with probed(tmp_path) as target:
        found = find_watchable(target.pid)
        assert found.page is not None
        found.page.close()
        assert found.page.hello.pid == target.pid


def test_what_is_not_python_and_has_nothing_below_is_refused() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            with pytest.raises(NothingToMeasureError, match="not Python"):
                find_watchable(process.pid)
        finally:
            process.kill()


def test_a_pid_that_has_ended() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(NoProcessError):
        find_watchable(process.pid)


def test_ls_leaves_out_what_has_neither_a_gpu_nor_torch(tmp_path: Path) -> None:
    """It is nobody's business; by its pid it is."""
    script = tmp_path / "train.py"
    script.write_text(PLAIN)
    with running([sys.executable, str(script)]) as (process, _):
        listed = gpuwatch("ls", "--json")
        assert process.pid not in [json.loads(line)["pid"] for line in listed.stdout.splitlines()]
        assert find_watchable(process.pid).pid == process.pid


@pytest.mark.skipif(not can_unshare(), reason="needs unshare, and the right to use it")
class TestContainers:
    COMMAND = ("unshare", "--pid", "--fork", "--mount-proc", "--mount")

    def test_the_hosts_pid(self, tmp_path: Path) -> None:
        command = [*self.COMMAND, sys.executable, str(toy(tmp_path))]
        with running(command) as (outer, (inner,)):
            (pid,) = children_of(outer.pid)
            found = find_watchable(pid)
        assert inner == 1
        assert (found.pid, found.page) == (pid, None)

    def test_what_started_the_container(self, tmp_path: Path) -> None:
        command = [*self.COMMAND, sys.executable, str(toy(tmp_path))]
        with running(command) as (outer, _):
            (pid,) = children_of(outer.pid)
            assert find_watchable(outer.pid).pid == pid

    def test_the_pid_that_it_has_inside(self, tmp_path: Path) -> None:
        """A number that nobody has out here: enough processes are started in there first."""
        free = unused_pid()
        last = f"echo {free - 1} > /proc/sys/kernel/ns_last_pid"
        script = f"{last} && {sys.executable} {toy(tmp_path)}; true"
        with running([*self.COMMAND, "sh", "-c", script]) as (_, (inner,)):
            if inner != free:
                pytest.skip("the kernel does not let the next pid be chosen")
            found = find_watchable(inner)
            assert pids_inside(found.pid)[-1] == inner
        assert found.notes[0].startswith(f"{inner} is the pid inside a container")

    @contextmanager
    def probed_inside(self) -> Iterator[int]:
        """Its socket lies in a folder that is mounted in there alone."""
        code = "import time, probe; probe.install(); print('here', 1, flush=True)\n"
        code += "while True:\n    time.sleep(0.02)\n    probe.step()"
        script = f'mount -t tmpfs none /mnt && TMPDIR=/mnt exec {sys.executable} -c "{code}"'
        with running([*self.COMMAND, "sh", "-c", script]) as (outer, _):
            (pid,) = children_of(outer.pid)
            yield pid

    def test_a_probe_inside_is_reached_through_its_own_root(self) -> None:
        with self.probed_inside() as pid:
            done = gpuwatch("attach", str(pid), "--json", "--duration", "4", "--no-stacks")
        last = json.loads(done.stdout.splitlines()[-1])
        assert (last["status"]["mode"], last["status"]["state"]) == ("hooks", "live")
        assert last["steps"]["total"] > 20

    def test_a_folder_inside_that_others_may_enter_is_refused(self) -> None:
        with self.probed_inside() as pid:
            folder = Path(f"/proc/{pid}/root/mnt/gpuwatch-{os.getuid()}")
            until(lambda: list(folder.glob("*.sock")))
            folder.chmod(0o755)
            with pytest.raises(NotPermittedError, match=f"/mnt/{folder.name} cannot be trusted"):
                find_watchable(pid)

    def test_a_socket_out_here_of_the_same_name_is_not_the_one_inside(self) -> None:
        with self.probed_inside() as pid:
            folder = Path(tempfile.mkdtemp(prefix="out-here-", dir="/mnt"))
            try:
                with socket.socket(socket.AF_UNIX) as bound:
                    bound.bind(str(folder / "1-1.sock"))
                    endpoint = f"ipc://{folder}/1-1.sock"
                    assert open_socket(endpoint, pid, os.getuid()) is None
                    held = open_socket(endpoint, os.getpid(), os.getuid())
            finally:
                shutil.rmtree(folder)
        assert held is not None
        held.close()


def children_of(pid: int) -> list[int]:
    """Of its main thread."""
    reported = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in reported.split()]


def unused_pid() -> int:
    """One that is far from those that are given out next."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    taken = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return next(pid for pid in range(most - 10, 1, -1) if pid not in taken)
