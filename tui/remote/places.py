"""Where an agent is to run, and the command that starts it there.

OpenSSH's own client carries the link, with the person's configuration, keys and jump hosts. Any
command that runs another one over there may stand in its place (`--via`).
"""

import os
import re
import shlex
from dataclasses import dataclass
from typing import Final

from ..errors import ORIGIN, UsageError

SSH: Final = "GPUWATCH_SSH"
"""The variable that names another ssh, with options: `ssh -F other_config`."""
SSH_OPTIONS: Final = (
    *("-T", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"),
    *("-o", "ForwardX11=no"),
)
"""No terminal over there, and nothing of the person's configuration that would get in the way of a
command: forwarded ports that another connection holds, a command of their own."""
UNASKING: Final = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""While the screen is up, ssh can ask nobody."""
NONE: Final = b"GPUWATCH-NONE"
"""What the search prints where nothing has gpuwatch; the Python that could have it follows."""
_PYTHON: Final = re.compile(r"/[\w./+-]+", re.ASCII)
"""A path that no shell takes for more than a word."""

PROBE: Final = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
"""Loads nothing, and so takes 20 ms and not 70."""
FIND: Final = (
    # Of a process that belongs to somebody else nothing is run, and of one with another root
    # (a container) nothing can be.
    "p={pid}; x=; "
    'has() {{ [ -x "$1" ] && "$1" -c "{probe}" gpuwatch_torch msgspec psutil '
    "</dev/null >/dev/null 2>&1; }}; "
    'try() {{ case "$1" in /*) [ -z "$x" ] && has "$1" && x="$1";; esac; }}; '
    'of() {{ tr "\\0" "\\n" <"/proc/$p/$1"; }}; '
    'if [ -n "$p" ] && [ -O "/proc/$p" ] && [ "$(readlink "/proc/$p/root")" = / ]; then '
    'c=$(of cmdline | head -n 1); try "$c"; '
    'case "$c" in /*) ;; */*) try "$(readlink "/proc/$p/cwd")/$c";; esac; '
    "for v in $(of environ | sed -n -e s/^VIRTUAL_ENV=//p -e s/^CONDA_PREFIX=//p); "
    'do try "$v/bin/python"; done; '
    'try "$(readlink "/proc/$p/exe")"; fi 2>/dev/null; '
    '[ -n "$x" ] && exec "$x" -m gpuwatch_torch agent; '
    'for g in "$(command -v gpuwatch)" "$HOME/.local/bin/gpuwatch"; '
    'do [ -x "$g" ] && exec "$g" agent; done; '
    'l=$("$SHELL" -lc "command -v gpuwatch || command -v python3" </dev/null 2>/dev/null '
    "| tail -n 1); "
    'case "$l" in */gpuwatch) exec "$l" agent;; esac; '
    'y=$(command -v python3); try "$l"; try "$y"; '
    '[ -n "$x" ] && exec "$x" -m gpuwatch_torch agent; '
    'echo {none} "${{y:-$l}}"; exit 127'
)
"""A shell's search for a Python with gpuwatch: the target's own, its environment's, the one on the
path, the login shell's."""


def search(pid: int | None) -> str:
    """The script, without a single quote or a line break: any login shell hands it on whole."""
    return FIND.format(pid="" if pid is None else pid, none=NONE.decode(), probe=PROBE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent runs."""

    host: str
    """As the person named it, for ssh; of `via` only a name for the screen."""
    via: tuple[str, ...] = ()
    """The command that takes another one and runs it there; () for ssh."""

    @property
    def name(self) -> str:
        """For messages and the header."""
        return self.host or " ".join(self.via)

    def command(self, pid: int | None, asks: bool = True) -> list[str]:
        """What starts the agent for this process; `asks`: a person can answer ssh's questions."""
        if self.via:
            script = search(pid)
            if self.via[-1] == "-c":  # a shell that wants its script
                return [*self.via, script]
            return [*self.via, "sh", "-c", script]
        ssh = shlex.split(os.environ.get(SSH, "ssh"))
        unasking = () if asks else UNASKING
        return [*ssh, *SSH_OPTIONS, *unasking, "--", self.host, f"exec sh -c '{search(pid)}'"]

    def install(self, python: str) -> str:
        """The one command that installs gpuwatch there, for a person to run in a shell here.
        `python` is what that machine says: in the command it could say anything."""
        named = python if _PYTHON.fullmatch(python) else "python3"
        words = f"{named} -m pip install {ORIGIN}"
        if self.via and self.via[-1] != "-c":
            return f"{shlex.join(self.via)} {words}"
        before = shlex.join(self.via) if self.via else f"ssh {self.host}"
        return f"{before} {shlex.quote(words)}"  # a shell over there reads it once more


@dataclass(frozen=True, slots=True)
class Target:
    """A process of this machine or of another."""

    place: Place | None
    """None: here."""
    pid: int | None
    """None: to be chosen."""


def target_of(text: str | None, via: str | None) -> Target:
    """What "PID", "HOST:PID", "user@host:PID", "HOST:" and "HOST" name; with `via` the pid is one
    over there. Raises UsageError for what names nothing."""
    if via is not None:
        words = tuple(_words(via))
        return Target(Place("", words), None if text is None else _pid(text))
    if text is None:
        return Target(None, None)
    if text.isdecimal():
        return Target(None, _pid(text))
    host, colon, pid = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, pid = text, ""
    return Target(Place(_host(host)), _pid(pid) if pid else None)


def _words(via: str) -> list[str]:
    try:
        words = shlex.split(via)
    except ValueError as error:
        raise UsageError(f"--via {via!r} is no command", str(error)) from None
    if not words:
        raise UsageError("--via names no command", "", "Try: --via 'kubectl exec -i POD --'")
    return words


def _host(text: str) -> str:
    """A name that ssh cannot take for an option, and no shell for anything else."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    allowed = all(char.isalnum() or char in "@._-:%+" for char in host)
    if not host or not allowed or host.startswith("-"):
        raise UsageError(f"{text!r} is neither a process id nor HOST:PID", "See: gpuwatch ls")
    return host


def _pid(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
        raise UsageError(f"{text!r} is not a process id", "See: gpuwatch ls HOST")
    return int(text)
