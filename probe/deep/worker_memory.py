"""What grows in DataLoader workers: traced in them on request, and gathered by their parent.

In a worker `tracemalloc` runs for the window, and two looks tell what has grown, as in the process
that trains. Its objects are not counted by type: asking the garbage collector for all of them
writes to the pages of a whole dataset, which a fork shares with its parent until then.

Each worker's answer is a file beside the socket: empty from its beginning, whole at its end.
"""

import json
import os
from _tracemalloc import is_tracing
from typing import Any, Final

from .. import clock
from ..circuit_breaker import is_users
from ..figures import resident_bytes
from ..private_files import create, remove
from .giving_way import PythonTraces
from .memory_facts import Lines, host_answer, lines_now

SUFFIX: Final = ".worker"
FRAMES: Final = 8
MOST_WORKERS: Final = 64
MOST_LINES: Final = 60
"""Of a worker, and of all together: 60 with eight frames of 180 bytes have 90 KB."""
MOST_BYTES: Final = 1_000_000
PATIENCE_NS: Final = 6_000_000_000
"""Behind the window's end: a worker without work looks every five seconds."""


class WorkerWindow:
    """In a worker, on its main thread."""

    def __init__(self, stem: str, until_ns: int) -> None:
        """Begins. Raises OSError where no answer can be left."""
        self._path = f"{stem}.{os.getpid()}{SUFFIX}"
        self._until_ns = until_ns
        began_ns = clock.now_ns()
        self._first_ns = began_ns + (until_ns - began_ns) // 3
        self._first: tuple[int, Lines] | None = None
        """The earlier look: turns by then, lines."""
        self._turns = 0
        self._rss_bytes = resident_bytes()[0] or 0
        os.close(create(self._path))
        self._traces: PythonTraces | None = None
        """While tracemalloc is on for us, and not for the worker's own code."""
        if not is_tracing():
            self._traces = PythonTraces(self.cut)
            self._traces.start(FRAMES)

    def turn(self) -> bool:
        """Between two batches: whether it goes on."""
        if self._traces is None:
            self._leave({"why_not": "the worker runs tracemalloc itself"})
            return False
        if not is_tracing():
            self.cut()
            self._leave({"why_not": "the worker has stopped tracemalloc itself"})
            return False
        try:
            return self._goes_on()
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """It is not wanted any more, or the worker's own code traces."""
        traces, self._traces = self._traces, None
        if traces is not None:
            traces.stop()

    def _goes_on(self) -> bool:
        now_ns = clock.now_ns()
        self._turns += 1
        if now_ns >= self._until_ns:
            self._end()
            return False
        if self._first is None and now_ns >= self._first_ns:
            self._first = self._turns, lines_now()
        return True

    def _end(self) -> None:
        lines = lines_now() if self._first is not None else {}
        self.cut()
        if self._first is None:
            self._leave({"why_not": "the worker made too few batches"})
            return
        answer = host_answer(*self._first, self._turns, lines, {}, {})
        grew = (resident_bytes()[0] or 0) - self._rss_bytes
        self._leave({
            "turns": answer["steps"], "lines": answer["lines"][:MOST_LINES], "rss_grew": grew,
        })  # fmt: skip

    def _leave(self, answer: dict[str, Any]) -> None:
        """Nothing where the parent has stopped waiting."""
        if not os.path.exists(self._path):
            return
        part = f"{self._path}-part"
        with os.fdopen(create(part), "w") as file:
            json.dump(answer, file)
        os.replace(part, self._path)


class WorkersAsked:
    """In the process that trains, on the publisher's thread: what its workers have answered."""

    def __init__(self, stem: str, until_ns: int) -> None:
        self._folder = os.path.dirname(stem)
        self._start = f"{os.path.basename(stem)}."
        self._late_ns = until_ns + PATIENCE_NS

    def is_waited_for(self, now_ns: int) -> bool:
        """One that lives has begun and not answered."""
        if now_ns >= self._late_ns:
            return False
        return any(not size and _lives(path) for path, size in self._files())

    def answer(self) -> dict[str, Any]:
        """Of all of them together, and the files are removed."""
        sums: dict[tuple[tuple[str, int], ...], list[int]] = {}
        whys: list[str] = []
        asked = answered = turns = grew = 0
        for path, size in self._files():
            asked += 1
            found = _read(path) if 0 < size <= MOST_BYTES else None
            remove(path)
            if found is None:
                continue
            if found.get("why_not"):
                whys.append(found["why_not"])
                continue
            answered += 1
            turns += found["turns"]
            grew += max(0, found["rss_grew"])
            for more, count, stack in found["lines"]:
                row = sums.setdefault(tuple((file, line) for file, line in stack), [0, 0, 0])
                row[0] += more
                row[1] += count
                row[2] += 1
        largest = sorted(sums.items(), key=lambda one: -one[1][0])[:MOST_LINES]
        return {
            "asked": asked,
            "answered": answered,
            "turns": turns,
            "rss_grew": grew,
            "lines": [[*row, stack] for stack, row in largest],
            "why_not": whys[0] if whys else "",
        }

    def remove(self) -> None:
        """Whatever they have left."""
        for path, _ in self._files():
            remove(path)

    def _files(self) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        try:
            with os.scandir(self._folder) as entries:
                for one in entries:
                    ours = one.name.startswith(self._start) and one.name.endswith(SUFFIX)
                    if ours and len(found) < MOST_WORKERS:
                        found.append((one.path, one.stat(follow_symlinks=False).st_size))
        except OSError:
            pass  # the folder is removed, or a file went as it was looked at
        return found


def _lives(path: str) -> bool:
    """Whether the worker of this file does."""
    pid = path.removesuffix(SUFFIX).rpartition(".")[2]
    try:
        os.kill(int(pid), 0)
    except (OSError, ValueError):
        return False
    return True


def _read(path: str) -> dict[str, Any] | None:
    """What a worker has written; it has run the program's own code, and may be anything."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            found = json.loads(file.read(MOST_BYTES))
        return {
            "why_not": str(found.get("why_not", ""))[:200],
            "turns": int(found.get("turns", 0)),
            "rss_grew": int(found.get("rss_grew", 0)),
            "lines": [
                (int(more), int(count), [(str(file), int(line)) for file, line in stack])
                for more, count, stack in found.get("lines", ())[:MOST_LINES]
            ],
        }
    except Exception as error:
        if is_users(error):
            raise
        return None
