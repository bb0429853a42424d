"""`python -m tests.remote.table`: the table of docs/remote.md, measured here.

Each row is a way to the same sshd on loopback: the login alone (`ssh HOST true`), how long after it
the live screen has the run's numbers, bytes a second on the wire, and the CPU of both sides.
"""

import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from tests.processes.command_line import gpuwatch, started, toy
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.remote.servers import Servers, servers

WATCHED_S = 30.0
TIMES = 10
"""Each is timed so often; the median counts."""


class Way(NamedTuple):
    """A row."""

    name: str
    host: str
    delay_s: float = 0.0
    bits_s: float = 1e9
    loss: float = 0.0


WAYS = (
    Way("loopback", "near"),
    Way("behind a jump host", "behind"),
    Way("150 ms, 1 % loss, 256 kbit/s", "far", 0.075, 256e3, 0.01),
)


def main() -> None:
    """Print it."""
    head = ["way", "login", "screen after it", "bytes/s", "CPU there", "CPU here", "verdict"]
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder, toy(Path(folder)) as target:
            options = {"delay_s": way.delay_s, "bits_s": way.bits_s, "loss": way.loss}
            with servers(Path(folder), **options) as running:
                print("| " + " | ".join(_row(way, running, target.pid)) + " |", flush=True)


def _row(way: Way, running: Servers, pid: int) -> list[str]:
    login_s = median(_login_s(way, running) for _ in range(TIMES))
    screen_s = median(_screen_s(way, running, pid) for _ in range(TIMES))
    bytes_s, there, here, verdict = _watched(way, running, pid)
    same = "as local" if verdict == _local(pid) else f"{verdict}, local {_local(pid)}"
    return [
        way.name,
        f"{login_s:.2f} s",
        f"{screen_s - login_s:.2f} s",
        f"{bytes_s:,.0f}",
        f"{there:.1f}%",
        f"{here:.1f}%",
        same,
    ]


def _login_s(way: Way, running: Servers) -> float:
    began_s = time.monotonic()
    subprocess.run([*running.ssh.split(), way.host, "true"], check=True)
    return time.monotonic() - began_s


def _screen_s(way: Way, running: Servers, pid: int) -> float:
    began_s = time.monotonic()
    with PseudoTerminal(
        "gpuwatch.tui.cli.main",
        *("attach", f"{way.host}:{pid}"),
        size=(100, 30),
        environ={"GPUWATCH_SSH": running.ssh},
    ) as terminal:
        terminal.read_until(lambda: terminal.shows("p50"), seconds=30)
        return time.monotonic() - began_s


def _watched(way: Way, running: Servers, pid: int) -> tuple[float, float, float, str]:
    """Bytes a second on the link, CPU of the agent and of the monitor in percent of a core, and the
    verdict."""
    before = running.way.carried_bytes
    words = ("attach", f"{way.host}:{pid}", "--json", "--duration", str(WATCHED_S))
    with started(*words, GPUWATCH_SSH=running.ssh) as monitor:
        assert monitor.stdout is not None
        lines = [json.loads(monitor.stdout.readline()) for _ in range(8)]
        there, here = psutil.Process(_agent()), psutil.Process(monitor.pid)
        first = time.monotonic(), sum(there.cpu_times()[:2]), sum(here.cpu_times()[:2])
        lines += [json.loads(monitor.stdout.readline()) for _ in range(30)]
        last = time.monotonic(), sum(there.cpu_times()[:2]), sum(here.cpu_times()[:2])
    length_s = last[0] - first[0]
    link_bytes_s = float(lines[-1]["status"]["link"]["bytes_s"])
    carried = (running.way.carried_bytes - before) / WATCHED_S
    kind = str(lines[-1]["verdict"]["kind"])
    there_percent, here_percent = (100 * (last[at] - first[at]) / length_s for at in (1, 2))
    return carried or link_bytes_s, there_percent, here_percent, kind


def _agent() -> int:
    """The one that runs here."""
    found = []
    for one in psutil.process_iter(["cmdline"]):
        if re.search(r"gpuwatch_torch agent$", " ".join(one.info["cmdline"] or ())):
            found.append(one.pid)
    return max(found)


def _local(pid: int) -> str:
    done = gpuwatch("attach", str(pid), "--json", "--duration", "8")
    return str(json.loads(done.stdout.splitlines()[-1])["verdict"]["kind"])


if __name__ == "__main__":
    main()
