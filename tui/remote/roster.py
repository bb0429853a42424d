"""Which hosts a job runs on: named by a person, by a hostfile, by SLURM, or by NCCL.

What a program says is only ever offered to a person: none of these hosts is asked before that
person has named it or agreed.
"""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import UsageError

MOST_HOSTS: Final = 1_024
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.@:%+-]+")
_BRACKETS: Final = re.compile(r"([^\[\],]*)\[([0-9,-]+)\]([^\[\],]*)")
_SPLIT: Final = re.compile(r",(?![^\[]*\])")


def hosts_in(text: str) -> list[str]:
    """ "node[1-3,7],login" as SLURM writes it, or hosts with commas between them. Raises UsageError
    for what names none."""
    found: list[str] = []
    for part in _SPLIT.split(text.strip()):
        found += _expanded(part.strip())
        if len(found) > MOST_HOSTS:
            raise UsageError(f"more than {MOST_HOSTS:,} hosts are named")
    return found


def _expanded(part: str) -> list[str]:
    match = _BRACKETS.fullmatch(part)
    if match is None:
        if not _PLAIN.fullmatch(part) or part.startswith("-"):
            raise UsageError(f"{part!r} names no host", "", "Try: --hosts node7,node8")
        return [part]
    before, numbers, after = match.groups()
    found: list[str] = []
    for piece in numbers.split(","):
        first, dash, last = piece.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"{part!r} names no hosts")
        until = int(last) if dash else int(first)
        if until < int(first):
            raise UsageError(f"{part!r} names no hosts", f"{piece} goes down.")
        if until - int(first) > MOST_HOSTS:
            raise UsageError(f"more than {MOST_HOSTS:,} hosts are named")
        wide = len(first)
        for number in range(int(first), until + 1):
            found += _expanded(f"{before}{number:0{wide}d}{after}")
    return found


def read_hostfile(path: str) -> list[str]:
    """Hosts of a file as mpirun, deepspeed and horovod have it: the first word of each line. Raises
    UsageError where it cannot be read or names none."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", error.strerror or "") from None
    words = [line.split("#")[0].split() for line in lines]
    found = [host for few in words if few for host in hosts_in(few[0].partition(":")[0])]
    if not found:
        raise UsageError(f"{path} names no host", "One host per line is wanted.")
    return found


# What a job's own environment and NCCL know of its hosts; asked beside the job, by its agent.

RAS: Final = ("127.0.0.1", 28_028)
"""NCCL's RAS service, on by default from NCCL 2.24; JSON from 2.28.7."""
RAS_REQUESTS: Final = b"CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT json\nSTATUS\n"
RAS_S: Final = 2.0
MOST_RAS_BYTES: Final = 4 << 20
SLURM_LISTS: Final = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
SLURM_S: Final = 5.0


class Roster(NamedTuple):
    """The hosts of a job, and who says so."""

    hosts: tuple[str, ...]
    source: str
    """"NCCL RAS", "SLURM"."""


def from_slurm(environ: Mapping[str, str]) -> Roster | None:
    """By the environment of a rank; None outside SLURM. A list that this reads otherwise than
    `scontrol` does is read by that; None where it does not answer."""
    text = next((environ[name] for name in SLURM_LISTS if environ.get(name)), None)
    if text is None:
        return None
    try:
        return Roster(tuple(hosts_in(text)), "SLURM")
    except UsageError:
        pass
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return None
    try:
        done = subprocess.run(
            [scontrol, "show", "hostnames", text],
            capture_output=True,
            text=True,
            timeout=SLURM_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    hosts = [line for line in done.stdout.split() if _PLAIN.fullmatch(line)]
    return Roster(tuple(hosts[:MOST_HOSTS]), "SLURM") if hosts else None


def from_ras(pid: int, address: tuple[str, int] = RAS) -> Roster | None:
    """By NCCL's RAS service on this host, where that knows the process; None where it does not
    answer. Two jobs of one user share the port: the pids say whose answer it is."""
    try:
        with socket.create_connection(address, RAS_S) as asked:
            asked.settimeout(RAS_S)
            asked.sendall(RAS_REQUESTS)
            answer = b""
            while len(answer) < MOST_RAS_BYTES and (data := asked.recv(65_536)):
                answer += data
    except OSError:
        return None
    return ras_roster(answer, pid)


def ras_roster(answer: bytes, pid: int) -> Roster | None:
    """From the text of an answer: lines, and in them one JSON object."""
    start = answer.find(b"{")
    if start < 0:
        return None
    try:
        status, _ = json.JSONDecoder().raw_decode(answer[start:].decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    found = _processes(status)
    if pid not in {one for _, one in found}:
        return None
    hosts = [host for host, _ in found if _PLAIN.fullmatch(host) and not host.startswith("-")]
    return Roster(tuple(dict.fromkeys(hosts))[:MOST_HOSTS], "NCCL RAS")


def _processes(status: Any, host: str = "", depth: int = 0) -> list[tuple[str, int]]:
    """Every (host, pid) in it, wherever NCCL's version has put them."""
    if depth > 12:
        return []
    if isinstance(status, list):
        return [one for item in status for one in _processes(item, host, depth + 1)]
    if not isinstance(status, dict):
        return []
    named = next((status[key] for key in ("host", "hostname", "node_addr") if key in status), host)
    host = named if isinstance(named, str) else host
    pid = status.get("pid")
    own = [(host, pid)] if isinstance(pid, int) and host else []
    return own + [one for value in status.values() for one in _processes(value, host, depth + 1)]
