"""SLURM on this machine for one test: a controller, and two node names with a daemon each."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.processes.monitored import until
from tests.remote.servers import free_port

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
SETTINGS: Final = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def needs_slurm() -> str:
    """Why there can be no SLURM here; "" where there can."""
    if os.geteuid() != 0:
        return "only root starts slurmd"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    lacking = [one for one in PROGRAMS if shutil.which(one, path=path) is None]
    return f"no {', '.join(lacking)} here (slurm-wlm, munge)" if lacking else ""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Running until the end; yields the environment of its commands. Skips where it cannot be."""
    if why := needs_slurm():
        pytest.skip(why)
    munge = folder / "munge"
    munge.mkdir()
    for one in (munge, folder, *folder.parents[:2]):
        one.chmod(0o711)  # munged wants everybody to come to its socket
    (munge / "key").write_bytes(os.urandom(1_024))
    (munge / "key").chmod(0o400)
    (folder / "state").mkdir()
    settings = SETTINGS.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        port=free_port(),
        first=free_port(),
        second=free_port(),
    )
    (folder / "slurm.conf").write_text(settings)
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    keys = (f"--key-file={munge}/key", f"--seed-file={munge}/seed", f"--pid-file={munge}/pid")
    files = (f"--socket={munge}/socket", f"--log-file={munge}/log")
    with ExitStack() as stack:
        _start(stack, folder, environment, "munged", "--foreground", "--force", *keys, *files)
        until((munge / "socket").exists)
        _start(stack, folder, environment, "slurmctld", "-D")
        for node in ("n1", "n2"):
            _start(stack, folder, environment, "slurmd", "-D", "-N", node)
        until(lambda: _idle(environment) == 2)
        yield environment


def _start(stack: ExitStack, folder: Path, environment: dict[str, str], *words: str) -> None:
    program = shutil.which(words[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert program is not None
    with (folder / f"{words[0]}.out").open("ab") as out:
        process = subprocess.Popen(
            [program, *words[1:]], stdout=out, stderr=out, env={**os.environ, **environment}
        )
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)


def _idle(environment: dict[str, str]) -> int:
    """Nodes that are ready."""
    done = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%t"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.stdout.split().count("idle")
