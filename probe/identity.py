"""Who this process is: the fields of the hello."""

import copy
import json
import os
import socket
import sys
from typing import Any, Final

from . import clock
from .circuit_breaker import encodable

SCHEMA: Final = 3
"""The same number as messages.SCHEMA, which needs the codec: a test holds them together."""
VERSION: Final = "0.1.0"


class Identity:
    """The fields of `messages.Hello` in their order, as they are now."""

    def __init__(self, endpoint: str | None, fault: str | None) -> None:
        self.schema = SCHEMA
        self.pid = os.getpid()
        self.start_ticks = start_ticks()
        self.started_unix = clock.unix_seconds()
        self.argv = _argv()
        self.cwd = _cwd()
        self.executable = encodable(sys.executable or "")
        self.python = ".".join(map(str, sys.version_info[:3]))
        self.torch = torch_version()
        self.probe = VERSION
        self.host = socket.gethostname()
        self.uid = os.getuid()
        rank, world_size = _group() or (_number("RANK"), _number("WORLD_SIZE"))
        self.rank = rank
        self.local_rank = _number("LOCAL_RANK")
        self.world_size = world_size
        self.restart_count = _number("TORCHELASTIC_RESTART_COUNT")
        self.endpoint = endpoint
        """`ipc://...`, or None with a `fault` where no socket could be had."""
        self.fault = fault

    def but(self, endpoint: str | None, fault: str | None) -> "Identity":
        """The same process with another endpoint or fault, and the torch and the group of ranks
        that are there by now."""
        other = copy.copy(self)
        other.endpoint, other.fault, other.torch = endpoint, fault, torch_version()
        other.rank, other.world_size = _group() or (self.rank, self.world_size)
        return other

    def as_json(self, limit_bytes: int) -> bytes:
        """JSON of at most `limit_bytes`: the command line is cut first, then the longest texts."""
        fields = dict(vars(self))
        encoded = json.dumps(fields).encode()
        while len(encoded) > limit_bytes:
            texts = [name for name, value in fields.items() if isinstance(value, str)]
            name = "argv" if fields["argv"] else max(texts, key=lambda one: len(fields[one]))
            fields[name] = fields[name][: len(fields[name]) // 2]
            encoded = json.dumps(fields).encode()
        return encoded


def torch_version() -> str | None:
    """The version of the user's torch (a plain string: its own class is no codec's); None before
    it is imported."""
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return None if version is None else str(version)


def _group() -> tuple[int, int] | None:
    """This rank and how many there are, by torch itself: a script may number them without any
    launcher (`mp.spawn`), or by what srun and mpirun set, long after it was started. None without a
    group."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if not distributed.is_initialized():
            return None
        return int(distributed.get_rank()), int(distributed.get_world_size())
    except (AttributeError, ValueError, RuntimeError):
        return None  # not imported, not in this build, or destroyed just now


def start_ticks() -> int:
    """Field 22 of /proc/self/stat, clock ticks after boot; 0 where there is no /proc."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def _argv() -> list[str]:
    """`sys.argv`; while the packages around a `-m` module are imported, that holds no name yet."""
    argv = list(getattr(sys, "argv", []))
    if argv[:1] == ["-m"]:
        argv[0] = sys.orig_argv[-len(argv)].removeprefix("-m")
    return [encodable(str(word)) for word in argv]


def _cwd() -> str:
    try:
        return encodable(os.getcwd())
    except OSError:
        return ""  # the directory was removed


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else None
