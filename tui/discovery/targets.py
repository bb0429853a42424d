"""Finding what can be watched, and telling why something cannot."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from ...probe.wire.messages import Hello
from ..errors import GpuwatchError, NoProcessError, NothingToMeasureError, NotPermittedError
from .access import check_socket_directory, looking_in, refused_because
from .command_lines import install_line, run_again
from .process_kind import has_opened_driver
from .state_page import OpenPage, Words, pages_of

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
    return os.path.basename(argv[0]) if argv and argv[0] else "python"


def script_of_process(process: psutil.Process) -> str:
    """What a Python process runs, by its command line: the first word that is no option. Of one
    that multiprocessing has spawned, what its parent runs."""
    words = process.cmdline()[1:]
    if SPAWNED in words and (parent := process.parent()) is not None:
        return script_of_process(parent)
    if "-c" in words[:1]:
        return "-c"
    named = [word for word in words if not word.startswith("-")]
    return script_of(named[:1]) if named else process.name()


def find_probes() -> list[Found]:
    """Every process with a probe that we may look at, by pid."""
    found = []
    for pid in psutil.pids():
        try:
            pages = pages_of(pid)
        except OSError:
            continue  # gone, or somebody else's
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
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return [pid]
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return [int(field) for field in line.split()[1:]]
    return [pid]


def start_ticks(pid: int) -> int | None:
    """Field 22 of its stat, clock ticks after boot; None when it is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    return int(text.rpartition(b")")[2].split()[19])


def user_of(pid: int) -> str:
    """Whose process it is."""
    try:
        return psutil.Process(pid).username()
    except psutil.Error:
        return "?"


def own_page(pid: int) -> OpenPage | None:
    """The state page of a process itself; None without one, and where it cannot be looked at."""
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
            refused_because("Only its owner and root may look into it."),
            looking_in(f"gpuwatch attach {pid}"),
        ) from None
    except FileNotFoundError:
        raise _no_process(pid) from None
    own = [opened for opened in pages if is_own(opened.hello, pid)]
    for opened in pages:
        if opened not in own:
            opened.close()
    if own:
        check_socket_directory(own[0].hello, pid, process.uids().real)
        return own[0]
    raise _why_not(process, [opened.hello.pid for opened in pages])


def _no_process(pid: int) -> NoProcessError:
    return NoProcessError(f"no process {pid}", fix="See: gpuwatch ls")


def _why_not(process: psutil.Process, owners: list[int]) -> GpuwatchError:
    pid, name = process.pid, process.name()
    if owners and owners[0] != pid and not psutil.pid_exists(owners[0]):
        return NothingToMeasureError(
            f"{pid} is left over from the training process {owners[0]}, which has died",
            "A worker that outlived it still holds its files; there are no steps any more.",
            f"To be rid of it: kill {pid}",
        )
    if owners and owners[0] != pid:
        return NothingToMeasureError(
            f"{pid} is a worker of the training process {owners[0]}",
            "A worker has no steps of its own.",
            f"Try: gpuwatch attach {owners[0]}",
        )
    below = [one for one in find_probes() if _is_below(one.pid, pid)]
    if below:
        said = ", ".join(f"{one.pid} ({one.script})" for one in below[:8])
        return NothingToMeasureError(
            f"{pid} ({name}) does not train itself; processes below it do",
            f"Below it: {said}",
            f"Try: gpuwatch attach {below[0].pid}",
        )
    if process.status() == psutil.STATUS_ZOMBIE:
        return NoProcessError(f"process {pid} has ended", "Its parent has not noticed yet.")
    if not is_python(process):
        return NothingToMeasureError(
            f'{pid} is "{name}", not Python',
            "gpuwatch watches Python processes that train with PyTorch.",
            "See: gpuwatch ls",
        )
    return NothingToMeasureError(
        f"{pid} ({name}) has no probe in it",
        "gpuwatch sees the steps of a process that was started with it inside.",
        f"Next time: {run_again(pid)}, or with {install_line(pid)} at its top",
    )


def _is_below(pid: int, ancestor: int) -> bool:
    try:
        return ancestor in (parent.pid for parent in psutil.Process(pid).parents())
    except psutil.Error:
        return False


def python_of(pid: int) -> tuple[int, int] | None:
    """The version of a Python process, by the names of its program and library: 3.14 for
    "python3.14". None where they do not tell."""
    try:
        program = os.readlink(PROC / str(pid) / "exe")
        told = "\n".join((program, (PROC / str(pid) / "maps").read_text()))
    except OSError:
        return None
    match = _VERSION.search(told)
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
    """Not so when it has ended and its parent has not noticed."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


# What can be watched on this machine, or could be: for the list and for the picker.


@dataclass(frozen=True, slots=True)
class Launcher:
    """What started the ranks of a job."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One process."""

    pid: int
    user: str
    script: str
    found: Found | None
    """What its probe says; None: it holds a GPU, and has no probe."""
    launcher: Launcher | None = None
    """Of a rank; None for a run of one process."""

    @property
    def rank(self) -> str:
        """ "0/8", or "-"."""
        hello = self.found.hello if self.found else None
        if hello is None or hello.rank is None:
            return "-"
        return f"{hello.rank}/{hello.world_size or '?'}"

    @property
    def steps(self) -> str:
        """ "18,204", or "no probe"."""
        return "no probe" if self.found is None else f"{self.found.words.steps:,}"


def find_candidates() -> list[Candidate]:
    """Processes with a probe, ranks next to each other; then those on a GPU without one."""
    probes = [_with_probe(found) for found in find_probes()]
    launchers = {one.launcher.pid for one in probes if one.launcher}
    probes = [one for one in probes if one.pid not in launchers]  # named above their ranks
    launched = sorted(probes, key=lambda one: one.launcher.pid if one.launcher else one.pid)
    return [*launched, *_without_probe({one.pid for one in probes})]


def _with_probe(found: Found) -> Candidate:
    several = found.hello.rank is not None and (found.hello.world_size or 1) > 1
    launcher = _launcher_of(found.pid) if several else None
    return Candidate(found.pid, found.user, found.script, found, launcher)


def _launcher_of(pid: int) -> Launcher | None:
    try:
        parent = psutil.Process(pid).parent()
        if parent is None or not is_python(parent):
            return None
        return Launcher(parent.pid, script_of_process(parent))
    except psutil.Error:
        return None


def _without_probe(probed: set[int]) -> list[Candidate]:
    """Python processes that hold the driver open. Workers inherit it from who started them."""
    holding = [pid for pid in psutil.pids() if pid not in probed and has_opened_driver(pid)]
    known = probed | set(holding)
    candidates = []
    for pid in holding:
        try:
            process = psutil.Process(pid)
            inherited = any(parent.pid in known for parent in process.parents())
            if not inherited and is_python(process):
                candidates.append(Candidate(pid, user_of(pid), script_of_process(process), None))
        except psutil.Error:
            continue  # gone, or somebody else's
    return candidates
