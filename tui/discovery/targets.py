"""Processes with a probe, and why one that is asked for cannot be watched."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..errors import GpuwatchError, NoProcessError, NothingToMeasureError, NotPermittedError
from ..messages import Hello
from .command_lines import after_flags, install_line, run_again, text_of
from .sockets import check_socket
from .state_page import (
    OpenPage,
    Words,
    pages_of,
    refused_because,
    with_rights,
)

PROC = Path("/proc")
SPAWNED = "--multiprocessing-fork"
"""On the command line of what multiprocessing has spawned: it names no script."""
_VERSION = re.compile(r"python(?P<major>3)\.(?P<minor>\d+)")


@dataclass(frozen=True, slots=True)
class Found:
    """A process with a probe, for `gpuwatch ls`."""

    pid: int
    hello: Hello
    words: Words
    user: str

    @property
    def script(self) -> str:
        """What it runs."""
        return script_of(self.hello.argv)


def script_of(argv: list[str]) -> str:
    """The name of what a process runs: its script, or the module behind `-c` and `-m`."""
    return text_of(os.path.basename(argv[0])) if argv and argv[0] else "python"


def script_of_process(process: psutil.Process) -> str:
    """What a Python process runs, by its command line: behind the interpreter's own options. Of one
    that multiprocessing has spawned, what its parent runs."""
    words = process.cmdline()
    if SPAWNED in words and (parent := process.parent()) is not None:
        return script_of_process(parent)
    rest = after_flags(words)
    if rest and rest[0].startswith("-c"):
        return "-c"
    named = [word for word in rest if not word.startswith("-")]
    return script_of(named[:1]) if named else text_of(process.name())


def find_probes() -> list[Found]:
    """Every process with a probe that we may look at, by pid."""
    found = []
    for pid in psutil.pids():
        try:
            pages = pages_of(pid)
        except OSError:
            continue  # it has ended, or is another user's
        for opened in pages:
            if is_own(opened.hello, pid):
                found.append(Found(pid, opened.hello, opened.words(), user_of(pid)))
            opened.close()
    return sorted(found, key=lambda one: one.pid)


def is_own(hello: Hello, pid: int) -> bool:
    """Whether a page is the process's own: a fork inherits the descriptor of its parent's."""
    return hello.pid in pids_inside(pid) and hello.start_ticks == start_ticks(pid)


def pids_inside(pid: int) -> list[int]:
    """A process's pid in every pid namespace it is in, ours first."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return [pid]
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return [int(field) for field in line.split()[1:]]
    return [pid]


def stat_fields(folder: Path) -> list[bytes]:
    """Of a process or a thread, by its folder in /proc: what its stat has behind the name, which
    may hold anything. Raises OSError when it has ended."""
    return (folder / "stat").read_bytes().rpartition(b")")[2].split()


def start_ticks(pid: int) -> int | None:
    """Field 22 of its stat, clock ticks after boot; None when it has ended."""
    try:
        return int(stat_fields(PROC / str(pid))[19])
    except OSError:
        return None


def user_of(pid: int) -> str:
    """Whose process it is."""
    try:
        return psutil.Process(pid).username()
    except psutil.Error:
        return "?"


def own_page(pid: int) -> OpenPage | None:
    """The state page of a process itself; None without one, and where this user may not read it."""
    try:
        pages = pages_of(pid)
    except OSError:
        return None
    own = [opened for opened in pages if is_own(opened.hello, pid)]
    for opened in pages:
        if opened not in own[:1]:
            opened.close()
    return own[0] if own else None


def open_target(pid: int) -> OpenPage:
    """The state page of a process that is to be watched.

    Raises a GpuwatchError that says why where there is none: no such process, somebody else's, not
    Python, a DataLoader worker, a launcher, or a Python process without a probe.
    """
    try:
        process = psutil.Process(pid)
        name = process.name()
    except psutil.NoSuchProcess:
        raise _no_process(pid) from None
    try:
        pages = pages_of(pid)
    except PermissionError:
        raise NotPermittedError(
            f"process {pid} ({name}) belongs to {user_of(pid)}",
            refused_because("Only its owner and root may read it."),
            with_rights(f"gpuwatch attach {pid}"),
        ) from None
    except FileNotFoundError:
        raise _no_process(pid) from None
    own = [opened for opened in pages if is_own(opened.hello, pid)]
    for opened in pages:
        if opened not in own:
            opened.close()
    if own:
        check_socket(own[0].hello, pid, process.uids().real)
        return own[0]
    raise _why_not(process, [opened.hello.pid for opened in pages])


def _no_process(pid: int) -> NoProcessError:
    return NoProcessError(f"no process {pid}", fix="See: gpuwatch ls")


def _why_not(process: psutil.Process, owners: list[int]) -> GpuwatchError:
    pid, name = process.pid, process.name()
    if owners and owners[0] != pid and not psutil.pid_exists(owners[0]):
        return NothingToMeasureError(
            f"{pid} is left over from the training process {owners[0]}, which has died",
            "A worker outlived it and still holds its files: there are no more steps.",
            f"To end it: kill {pid}",
        )
    if owners and owners[0] != pid:
        return NothingToMeasureError(
            f"{pid} is a worker of the training process {owners[0]}",
            "A worker has no steps of its own.",
            f"Try: gpuwatch attach {owners[0]}",
        )
    below = [one for one in find_probes() if _is_below(one.pid, pid)]
    if below:
        named = ", ".join(f"{one.pid} ({one.script})" for one in below[:8])
        return NothingToMeasureError(
            f"{pid} ({name}) does not train itself; processes below it do",
            f"Below it: {named}",
            f"Try: gpuwatch attach {below[0].pid}",
        )
    if process.status() == psutil.STATUS_ZOMBIE:
        return NoProcessError(
            f"process {pid} has ended", "It is a zombie: its parent has not reaped it."
        )
    if not is_python(process):
        return NothingToMeasureError(
            f'{pid} is "{name}", not Python',
            "gpuwatch watches Python processes that train with PyTorch.",
            "See: gpuwatch ls",
        )
    return NothingToMeasureError(
        f"{pid} ({name}) has no probe in it",
        "gpuwatch measures the steps of a process that was started with the probe.",
        f"Next time: {run_again(pid)}, or with {install_line(pid)} at its top",
    )


def _is_below(pid: int, ancestor: int) -> bool:
    try:
        return ancestor in (parent.pid for parent in psutil.Process(pid).parents())
    except psutil.Error:
        return False


def python_of(pid: int) -> tuple[int, int] | None:
    """The version of a Python process, by the names of its program and library: 3.14 for
    "python3.14". None where they do not show it."""
    try:
        program = os.readlink(PROC / str(pid) / "exe")
        names = "\n".join((program, (PROC / str(pid) / "maps").read_text(errors="replace")))
    except OSError:
        return None
    match = _VERSION.search(names)
    return (int(match["major"]), int(match["minor"])) if match else None


def is_python(process: psutil.Process) -> bool:
    """Whether a process is a Python interpreter, by its executable or what it has mapped."""
    try:
        if "python" in os.path.basename(process.exe()):
            return True
        return any("libpython" in row.path for row in process.memory_maps())
    except (psutil.Error, OSError):
        return "python" in process.name()


def still_runs(pid: int) -> bool:
    """False for a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
