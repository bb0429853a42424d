"""The process to watch for a pid: itself, a rank below a launcher, the parent of a worker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from ..errors import GpuwatchError, NoProcessError, NothingToMeasureError
from .command_lines import environ_of, has_torch, is_worker
from .sockets import check_socket
from .state_page import OpenPage, pages_of
from .targets import PROC, SPAWNED, is_python, open_target, own_page, pids_inside, script_of_process

LAUNCHERS: Final = ("torchrun", "accelerate", "deepspeed", "torch.distributed", "fabric")
"""In the first words of the command line of what imports torch and starts others that train."""
LAUNCHER_WORDS: Final = 4
IN_A_GROUP: Final = ("pt_gloo", "pt_nccl", "gloo_tcp")
"""How the threads are called that torch.distributed starts where a process joins a group."""
MOST_NAMED: Final = 8
"""Other processes that are named at most."""


@dataclass(frozen=True, slots=True)
class Watchable:
    """A process that can be watched."""

    pid: int
    page: OpenPage | None
    """None: it has no probe."""
    script: str
    notes: tuple[str, ...] = ()
    """Why it is another process than the one asked for, and which others there are."""


def find_watchable(pid: int) -> Watchable:
    """The process to watch for this pid.

    Raises a GpuwatchError that says why where there is none: no such process, somebody else's, not
    Python with nothing that trains below it, several that do.
    """
    try:
        page = open_target(pid)
    except NoProcessError as error:
        return _inside_a_container(pid, error)
    except NothingToMeasureError as error:
        return _other(psutil.Process(pid), error)
    process = psutil.Process(pid)
    if _is_at_work(page):
        return Watchable(pid, page, script_of_process(process))
    return _waiting(process, page)


def watched_now(pid: int, watched: int) -> int:
    """The process that a pid means by now: `watched`, which is watched for it, or another. What
    spawns ranks, and a rank that was taken for its worker, are known by what they do: that may be
    minutes after one of them was named. Cheap while nothing does: it asks the kernel for what is
    below."""
    if _is_busy(watched) or not any(map(_is_busy, (pid, *_below(watched)))):
        return watched
    try:
        found = find_watchable(pid)
    except (GpuwatchError, psutil.Error):
        return watched  # there are several by now, or it has just ended
    if found.page is None:
        return watched
    found.page.close()
    # What a training starts beside itself is none of its ranks.
    words = _words_of(found.pid)
    is_rank = found.page.hello.rank is not None or SPAWNED in words or words == _words_of(pid)
    return found.pid if is_rank or found.pid == pid else watched


def _words_of(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []  # it has just ended


def _waiting(process: psutil.Process, page: OpenPage) -> Watchable:
    """It has a probe that has seen nothing yet: what it has spawned may be what trains."""
    try:
        found = _Tree(process).trainings()
        ranks = None if process in found else _numbered(found)
    except psutil.NoSuchProcess:
        ranks = None
    if not ranks:
        return Watchable(process.pid, page, script_of_process(process))
    page.close()
    return _one_of(process, found)


def _other(process: psutil.Process, error: NothingToMeasureError) -> Watchable:
    """Without a page of its own: a worker's parent, what trains below it, or it as it is."""
    try:
        parent = _training_of(process)
        if parent is not None:
            notes = f"{process.pid} is a worker of {parent.pid}: watching {parent.pid}"
            return _opened(parent, (notes,))
        if _outlived(process):
            raise error
        found = _Tree(process).trainings()
    except psutil.NoSuchProcess:
        raise NoProcessError(f"process {process.pid} has just ended") from None
    if len(found) > 1:
        return _one_of(process, found)
    if found and found[0] != process:
        one = found[0]
        notes = f"{process.pid} ({process.name()}) has {_named(one)} below it: watching {one.pid}"
        return _opened(one, (notes,))
    if not is_python(process):
        raise error
    return _opened(process, ())


def _one_of(process: psutil.Process, found: Sequence[psutil.Process]) -> Watchable:
    """Of the ranks of one job the first. Of several trainings nobody can choose but the user.
    Raises NothingToMeasureError then."""
    named = ", ".join(map(_named, found[:MOST_NAMED]))
    ranks = _numbered(found)
    if ranks is None:
        raise NothingToMeasureError(
            f"{process.pid} ({process.name()}) has several trainings below it",
            named,
            f"Try: gpuwatch attach {found[0].pid}",
        )
    first = psutil.Process(ranks[0][1])
    others = ", ".join(f"{rank} is {pid}" for rank, pid in ranks[1 : MOST_NAMED + 1])
    count = "1 rank" if len(ranks) == 1 else f"{len(ranks)} ranks"
    notes = [f"{process.pid} ({process.name()}) started {count}: watching rank {ranks[0][0]}, pid "]
    notes[0] += str(first.pid)
    if others:
        notes.append(f"The others: rank {others}. To watch one: gpuwatch attach PID")
    return _opened(first, tuple(notes))


def _opened(process: psutil.Process, notes: tuple[str, ...]) -> Watchable:
    page = own_page(process.pid)
    if page is not None:
        check_socket(page.hello, process.pid, process.uids().real)
    return Watchable(process.pid, page, script_of_process(process), notes)


def _training_of(process: psutil.Process) -> psutil.Process | None:
    """Of a DataLoader's worker the process that trains."""
    parent = process.parent()
    if parent is None or not is_python(parent) or not _loads_for(process, parent):
        return None
    return parent if _trains(parent) else None


def _outlived(process: psutil.Process) -> bool:
    """It is a fork of a training process that has died, and holds its page."""
    pages = pages_of(process.pid)
    for page in pages:
        page.close()
    return bool(pages)


def _inside_a_container(pid: int, error: NoProcessError) -> Watchable:
    """There is no such pid here; a container's process may have it there. Raises `error` if not."""
    found = []
    for other in psutil.pids():
        if pids_inside(other)[1:][-1:] == [pid]:
            process = psutil.Process(other)
            if is_python(process) and _trains(process):
                found.append(process)
    if len(found) > 1:
        raise NoProcessError(
            f"no process {pid} here, and one in each of {len(found)} containers",
            f"As they are called here: {', '.join(map(_named, found[:MOST_NAMED]))}",
            f"Try: gpuwatch attach {found[0].pid}",
        )
    if not found:
        raise error
    notes = f"{pid} is the pid inside a container: watching {found[0].pid}, as it is called here"
    return _opened(found[0], (notes,))


class _Tree:
    """A process and all below it."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root
        self._below: dict[int, list[psutil.Process]] = {}
        for process in root.children(recursive=True):
            try:
                self._below.setdefault(process.ppid(), []).append(process)
            except psutil.Error:
                continue  # it has just ended

    def trainings(self) -> list[psutil.Process]:
        """The processes that train, judged by what they have loaded: those on top, but for
        launchers."""
        return self._from(self._root)

    def _from(self, process: psutil.Process) -> list[psutil.Process]:
        try:
            own = is_python(process) and _trains(process)
            below = [
                found
                for child in self._below.get(process.pid, [])
                if not (own and _loads_for(child, process))
                for found in self._from(child)
            ]
            if own and not (below and _launches(process, below)):
                return [process]
            return below
        except psutil.Error:
            return []  # it has just ended, or is somebody else's


def _loads_for(process: psutil.Process, parent: psutil.Process) -> bool:
    """It is a worker, and no rank: those are started with their parent's own command line, or as
    torch.multiprocessing.spawn does, as some workers are. A worker has no page: of a rank that got
    its number after it was started, it has what that was started with."""
    ranks = (_rank(parent), _environ_rank(parent))
    return is_worker(process, parent) and _rank(process) in ranks and not _trains_for_sure(process)


def _launches(process: psutil.Process, below: Sequence[psutil.Process]) -> bool:
    """It waits for others to train. A script that starts itself anew for the other ranks trains."""
    words = " ".join(process.cmdline()[:LAUNCHER_WORDS])
    if any(name in words for name in LAUNCHERS):
        return True
    line = process.cmdline()
    ranks = [one for one in below if _rank(one) is not None and one.cmdline() != line]
    if _rank(process) is None and ranks:
        return True
    return any(map(_trains_for_sure, below)) and not _trains_for_sure(process)


def _trains_for_sure(process: psutil.Process) -> bool:
    """It has a probe at work, or has joined others that train."""
    if _is_busy(process.pid):
        return True
    threads = Path(PROC / str(process.pid) / "task").glob("*/comm")
    return any(name.startswith(IN_A_GROUP) for name in map(_text_of, threads))


def _is_at_work(page: OpenPage) -> bool:
    """The probe has seen a boundary of a step."""
    return page.words().open_kind != 0


def _is_busy(pid: int) -> bool:
    """It has a probe at work."""
    page = own_page(pid)
    if page is None:
        return False
    at_work = _is_at_work(page)
    page.close()
    return at_work


def _below(pid: int) -> list[int]:
    """All processes below one, by the kernel's own lists."""
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []  # it has just ended
    children = [int(word) for one in threads for word in _text_of(one / "children").split()]
    return [*children, *(below for child in children for below in _below(child))]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # the thread has just ended, or the kernel keeps no such list


def _trains(process: psutil.Process) -> bool:
    """It has a probe, or torch."""
    page = own_page(process.pid)
    if page is not None:
        page.close()
        return True
    return has_torch(Path(PROC / str(process.pid) / "maps")) is not False


def _numbered(found: Sequence[psutil.Process]) -> list[tuple[int, int]] | None:
    """(rank, pid) of the ranks of one job; None where they are none. Those that nobody numbered
    outside themselves were spawned in their order: what all of them have is their parent's."""
    ranks = sorted((rank, one.pid) for one in found if (rank := _rank(one)) is not None)
    numbers = {rank for rank, _ in ranks}
    if len(ranks) == len(found) == len(numbers):
        return ranks
    parents = {one.ppid() for one in found}
    if len(numbers) > 1 or len(parents) != 1:
        return None
    forked = _words_of(parents.pop())  # as A3C's workers, which have their parent's own words
    if not all(SPAWNED in one.cmdline() or one.cmdline() == forked for one in found):
        return None
    return list(enumerate(one.pid for one in sorted(found, key=lambda one: one.create_time())))


def _rank(process: psutil.Process) -> int | None:
    """As its probe found it, or by the environment that it was started with."""
    page = own_page(process.pid)
    if page is not None:
        page.close()
        if page.hello.rank is not None:
            return page.hello.rank
    return _environ_rank(process)


def _environ_rank(process: psutil.Process) -> int | None:
    rank = environ_of(process.pid).get("RANK", "")
    return int(rank) if rank.isdecimal() else None


def _named(process: psutil.Process) -> str:
    return f"{process.pid} ({script_of_process(process)})"
