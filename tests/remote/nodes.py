"""Nodes of a cluster on one machine: network, pid and host-name namespaces, each with its sshd.

Every node has two interfaces: one to the monitor's side, over which ssh goes and which can be cut,
and one to the other node, over which the ranks of a job meet.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Final

import pytest

from tests.processes.command_line import ROOT
from tests.processes.monitored import until
from tests.remote.servers import SERVER, SSHD, listens, needs_sshd

PORT: Final = 2_222
CLIENT: Final = """
Host *
    User {user}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking accept-new
    LogLevel ERROR
    Port {port}
"""


@dataclass(frozen=True)
class Cluster:
    """Two nodes, `node1` and `node2`."""

    folder: Path
    name: str

    @property
    def ssh(self) -> str:
        """For GPUWATCH_SSH."""
        return f"ssh -F {self.folder}/config"

    def cut(self, node: int, cut: bool) -> None:
        """Take a node's way to the monitor away, or give it back; nobody is notified."""
        _ip("link", "set", f"{self.name}m{node}", "down" if cut else "up")

    @contextmanager
    def running(
        self, node: int, script: Path, environment: Mapping[str, str]
    ) -> Iterator["subprocess.Popen[str]"]:
        """A script on a node; its first line is its pid there. Ends with its stdin."""
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        python = f"{' '.join(words)} exec {sys.executable} -u {script}"
        with subprocess.Popen(
            [*shlex.split(self.ssh), f"node{node}", f"echo $$; {python}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def needs_namespaces() -> str:
    """Why there can be no nodes here; "" where there can."""
    if why := needs_sshd():
        return why
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"no {program} here"
    name = f"gwtry{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "this kernel makes no network namespaces here"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Both nodes with an sshd; skips the test where that cannot be."""
    if why := needs_namespaces():
        pytest.skip(why)
    name = f"gw{os.getpid() % 100_000}"
    found = Cluster(folder, name)
    for key in ("host_key", "key"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(keygen, check=True)
    net = os.getpid() % 200
    client = CLIENT.format(user=getuser(), folder=folder, port=PORT)
    with ExitStack() as stack:
        for node in (1, 2):
            stack.callback(_remove, f"{name}n{node}")
            _ip("netns", "add", f"{name}n{node}")
            _ip("-n", f"{name}n{node}", "link", "set", "lo", "up")
            near, far = f"{name}m{node}", f"{name}e{node}"
            _ip("link", "add", near, "type", "veth", "peer", "name", far)
            _ip("link", "set", far, "netns", f"{name}n{node}")
            _ip("addr", "add", f"10.{net}.{node}.1/24", "dev", near)
            _ip("link", "set", near, "up")
            _ip("-n", f"{name}n{node}", "addr", "add", f"10.{net}.{node}.2/24", "dev", far)
            _ip("-n", f"{name}n{node}", "link", "set", far, "up")
            client += f"Host node{node}\n    HostName 10.{net}.{node}.2\n"
        _ip("link", "add", f"{name}x1", "type", "veth", "peer", "name", f"{name}x2")
        for node in (1, 2):
            _ip("link", "set", f"{name}x{node}", "netns", f"{name}n{node}")
            space = ("-n", f"{name}n{node}")
            _ip(*space, "addr", "add", f"10.{net}.9.{node}/24", "dev", f"{name}x{node}")
            _ip(*space, "link", "set", f"{name}x{node}", "up")
        (folder / "config").write_text(client)
        for node in (1, 2):
            stack.enter_context(_sshd(found, node))
            until(lambda node=node: listens(f"10.{net}.{node}.2", PORT))  # type: ignore[misc]
        yield found


def meeting(cluster: Cluster, port: int) -> dict[str, str]:
    """Where the ranks of a job meet."""
    net = os.getpid() % 200
    return {"MASTER_ADDR": f"10.{net}.9.1", "MASTER_PORT": str(port)}


@contextmanager
def _sshd(cluster: Cluster, node: int) -> Iterator[None]:
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    settings = cluster.folder / f"node{node}"
    settings.write_text(
        SERVER.format(port=PORT, address="0.0.0.0", folder=cluster.folder, root=ROOT, path=path)
    )
    inside = f"hostname node{node}; exec {SSHD} -D -e -f {settings}"
    words = ["ip", "netns", "exec", f"{cluster.name}n{node}"]
    words += ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
    with (cluster.folder / f"node{node}.log").open("wb") as log:
        process = subprocess.Popen([*words, "sh", "-c", inside], stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _remove(space: str) -> None:
    subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
