"""Which hosts a job runs on: named by a person, by a hostfile, by SLURM, or by NCCL.

What a program says is only ever offered to a person: none of these hosts is asked before that
person has named it or agreed.
"""

import re
from pathlib import Path
from typing import Final

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
