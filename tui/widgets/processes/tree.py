"""The processes around a training as lines of a tree: launcher, ranks, workers, other children."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ...model.observations import ProcessUse
from ...model.snapshot import Snapshot

Order = Literal["pid", "cpu", "memory", "io"]
ORDERS: Final[tuple[Order, ...]] = ("pid", "cpu", "memory", "io")


@dataclass(frozen=True, slots=True)
class Line:
    """A process, or a thread of one that has a line of its own."""

    depth: int
    name: str
    use: ProcessUse | None
    """None of a thread."""
    cpu_percent: float | None
    """Of one core."""

    @property
    def pid(self) -> int | None:
        """None of a thread."""
        return None if self.use is None else self.use.pid


def tree_of(snapshot: Snapshot, order: Order = "pid") -> list[Line]:
    """All of them; those of one parent in the order that is asked for, the largest first."""
    around = () if snapshot.surroundings is None else snapshot.surroundings.around
    everyone = (*around, *snapshot.processes)
    launcher = next((one for one in around if one.role == "launcher"), None)
    main = next((one for one in snapshot.processes if one.role == "main"), None)
    below: dict[int | None, list[ProcessUse]] = {}
    pids = {one.pid for one in everyone}
    for use in everyone:
        below.setdefault(_above(use, launcher, main, pids), []).append(use)
    out: list[Line] = []
    left: list[tuple[int, ProcessUse]] = []
    """With their depths, the next one last. A recording may hold a chain of any length, and a pid
    twice: those below it are shown once."""

    def add(parent: int | None, depth: int) -> None:
        children = sorted(below.pop(parent, ()), key=_key(order), reverse=True)
        left.extend((depth, use) for use in children)

    add(None, 0)
    while left:
        depth, use = left.pop()
        out.append(Line(depth, name_of(snapshot, use), use, use.cpu_percent))
        if use.pin_cpu_percent is not None:
            out.append(Line(depth + 1, "pin thread", None, use.pin_cpu_percent))
        add(use.pid, depth + 1)
    return out


def matching(lines: Sequence[Line], words: str) -> list[Line]:
    """The lines whose name, pid or state has all the words in it; of a thread its name alone."""
    wanted = words.lower().split()
    return [line for line in lines if all(word in _searched(line) for word in wanted)]


def name_of(snapshot: Snapshot, use: ProcessUse) -> str:
    """ "train.py rank 0", "rank 1", "worker", or what the kernel calls it."""
    if use.role == "main":
        hello = snapshot.hello
        rank = None if hello is None or (hello.world_size or 1) < 2 else hello.rank
        name = snapshot.script or use.name
        return name if rank is None else f"{name} rank {rank}"
    if use.role == "rank" and use.rank is not None:
        return f"rank {use.rank}"
    return "worker" if use.role == "worker" else use.name


def held_bytes(use: ProcessUse) -> int:
    """Proportional where it was read, else resident."""
    return use.rss_bytes if use.pss_bytes is None else use.pss_bytes


def moved_bytes_s(use: ProcessUse) -> float | None:
    """Read and written together; None where neither is reported."""
    known = [rate for rate in (use.read_bytes_s, use.write_bytes_s) if rate is not None]
    return sum(known) if known else None


def _above(
    use: ProcessUse, launcher: ProcessUse | None, main: ProcessUse | None, pids: set[int]
) -> int | None:
    """Pid of the line that it stands below; older recordings hold no parents."""
    if use.role == "launcher":
        return None
    if use.role in ("main", "rank"):
        return None if launcher is None else launcher.pid
    if use.parent is not None and use.parent in pids and use.parent != use.pid:
        return use.parent
    return None if main is None else main.pid


def _key(order: Order) -> Callable[[ProcessUse], tuple[float, int]]:
    def key(use: ProcessUse) -> tuple[float, int]:
        by = {
            "pid": 0.0,
            "cpu": use.cpu_percent or 0.0,
            "memory": float(held_bytes(use)),
            "io": moved_bytes_s(use) or 0.0,
        }
        return (-by[order], use.pid)

    return key


def _searched(line: Line) -> str:
    use = line.use
    return line.name if use is None else f"{line.name} {use.name} {use.pid} {use.role}".lower()
