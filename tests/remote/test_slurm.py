"""A process of a SLURM job, watched from outside of it: `--via 'srun --overlap …'`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpuwatch.tui.remote.agent import roster_of
from tests.processes.command_line import TOY, environment, gpuwatch
from tests.processes.monitored import until
from tests.remote.slurm import slurm
from tests.remote.test_over_ssh import agents


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """With two nodes."""
    with slurm(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(scope="module")
def training(
    cluster: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, int]]:
    """A job on both nodes: its number, and the pid of what trains on the first."""
    folder = tmp_path_factory.mktemp("job")
    script = folder / "toy.py"
    writes_pid = (
        'open(f"{os.environ[\'SLURM_NODEID\']}.pid", "w").write(f"{os.environ[\'SLURM_JOB_ID\']}'
    )
    writes_pid += ' {os.getpid()}\\n")\n'
    script.write_text(
        TOY.format(steps=1_000_000).replace("import probe\n", f"import probe\n{writes_pid}", 1)
    )
    with subprocess.Popen(
        ["srun", "-N2", "-n2", "--chdir", str(folder), sys.executable, str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment(**cluster),
    ) as process:
        until(lambda: (folder / "0.pid").read_text().endswith("\n"))
        job, pid = (folder / "0.pid").read_text().split()
        yield job, int(pid)
        process.terminate()


@pytest.mark.slow
def test_a_process_of_a_job_is_watched_through_srun(
    cluster: dict[str, str], training: tuple[str, int]
) -> None:
    job, pid = training
    before = agents()
    via = f"srun --overlap --jobid {job} -w n1 -N1 -n1"
    words = ("attach", "--via", via, str(pid), "--json", "--duration", "7")
    done = gpuwatch(*words, SLURM_CONF=cluster["SLURM_CONF"])
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["verdict"]["kind"] == "host"
    assert last["status"]["link"]["place"] == via
    until(lambda: agents() == before)
    assert os.path.exists(f"/proc/{pid}")  # the job goes on


def test_the_job_names_its_hosts(training: tuple[str, int]) -> None:
    found = roster_of(training[1])
    assert (found.hosts, found.source) == (("n1", "n2"), "SLURM")
