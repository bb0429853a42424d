"""OpenSSH servers for one test: their own host keys, one key to log in with, ports of their own."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT
from tests.processes.monitored import until
from tests.remote.paths import Path as Way
from tests.remote.paths import path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
SetEnv PYTHONPATH={root} PATH={path}
"""
CLIENT = """
Host *
    User {user}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking accept-new
    LogLevel ERROR
Host near
    HostName {address}
    Port {port}
Host behind
    HostName {address}
    Port {behind}
    ProxyJump near
Host far
    HostName 127.0.0.1
    Port {far}
Host nobody
    HostName {address}
    Port {closed}
"""


@dataclass(frozen=True)
class Servers:
    """Two of them: `near`, and `behind`, which is reached through it; `nobody` listens."""

    folder: Path
    processes: "tuple[subprocess.Popen[bytes], ...]"
    way: Way
    """The one to `far`."""

    @property
    def ssh(self) -> str:
        """For GPUWATCH_SSH, so that gpuwatch uses the test's configuration."""
        return f"ssh -F {self.folder}/config"


def needs_sshd() -> str:
    """Why no server can be started here; "" where it can."""
    if SSHD is None:
        return "no sshd here (openssh-server)"
    if shutil.which("ssh") is None:
        return "no ssh here (openssh-client)"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it insists on it
    return ""


def free_port(address: str = "127.0.0.1") -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind((address, 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def servers(
    folder: Path,
    *,
    delay_s: float = 0.0,
    bits_s: float = 1e9,
    loss: float = 0.0,
) -> Iterator[Servers]:
    """Running until the end; skips the test where there is no sshd. `far` is `near` by a way with
    these properties, which can be cut."""
    address = "127.0.0.1"
    if why := needs_sshd():
        pytest.skip(why)
    for name in ("host_key", "key"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(keygen, check=True)
    port, behind, closed = (free_port(address) for _ in range(3))
    running = tuple(_started(folder, address, one) for one in (port, behind))
    try:
        for one in (port, behind):
            until(lambda one=one: listens(address, one))  # type: ignore[misc]
        with path((address, port), delay_s=delay_s, bits_s=bits_s, loss=loss) as way:
            text = CLIENT.format(
                user=getuser(),
                folder=folder,
                address=address,
                port=port,
                behind=behind,
                far=way.port,
                closed=closed,
            )
            (folder / "config").write_text(text)
            yield Servers(folder, running, way)
    finally:
        for process in running:
            process.terminate()
            process.wait(10)


def _started(folder: Path, address: str, port: int) -> "subprocess.Popen[bytes]":
    settings = folder / f"sshd_{port}"
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    settings.write_text(
        SERVER.format(port=port, address=address, folder=folder, root=ROOT, path=path)
    )
    log = (folder / f"sshd_{port}.log").open("wb")
    assert SSHD is not None
    with log:
        return subprocess.Popen([SSHD, "-D", "-e", "-f", str(settings)], stderr=log)


def listens(address: str, port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        with socket.create_connection((address, port), 1.0):
            return True
    except OSError:
        return False
