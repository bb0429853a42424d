"""Reading state pages: who a process is and what it does, without asking it."""

import os
from dataclasses import dataclass
from pathlib import Path

from ...probe.wire import page
from ...probe.wire.messages import Hello, decode_hello

READ_TRIES = 3
"""A hello that is being rewritten is broken JSON for some microseconds."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a page."""

    open_kind: int
    open_since_ns: int
    steps: int
    heartbeat_ns: int
    lost_marks: int
    state: int


@dataclass(frozen=True, slots=True)
class PageStep:
    """One step of the ring that outlives a hang; ns."""

    number: int
    start_ns: int
    end_ns: int
    data_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int
    named_ns: int


class OpenPage:
    """A page held open by descriptor, so that it can be read after its process has died."""

    def __init__(self, fd: int, hello: Hello) -> None:
        self._fd = fd
        self.hello = hello

    def words(self) -> Words:
        """What the process does now. Raises OSError when the page cannot be read."""
        raw = os.pread(self._fd, page.WORDS * 8, 0)
        values = [int.from_bytes(raw[i * 8 : i * 8 + 8], "little") for i in range(page.WORDS)]
        mark = page.unpack_open(values[page.WORD_OPEN])
        return Words(
            open_kind=mark.kind,
            open_since_ns=mark.t_ns,
            steps=values[page.WORD_STEPS],
            heartbeat_ns=values[page.WORD_HEARTBEAT],
            lost_marks=values[page.WORD_LOST_MARKS],
            state=values[page.WORD_STATE],
        )

    def rows(self, since: int = 0) -> list[PageStep]:
        """The last steps from number `since` on, oldest first; rows that are being written are left
        out."""
        return rows_of(os.pread(self._fd, page.SIZE, 0), since)

    def reread_hello(self) -> Hello:
        """The hello as it is now: it changes when the probe disarms or loses its socket."""
        self.hello = hello_of(os.pread(self._fd, page.SIZE, 0))
        return self.hello

    def close(self) -> None:
        """Let go of the page."""
        os.close(self._fd)


def hello_of(raw: bytes) -> Hello:
    """The hello of a page. Raises ValueError when it is not a page of ours."""
    header = page.unpack_header(raw)
    return decode_hello(raw[page.HELLO_OFFSET : page.HELLO_OFFSET + header.hello_bytes])


def rows_of(raw: bytes, since: int = 0) -> list[PageStep]:
    """The valid rows of a page's ring from step number `since` on, oldest first."""
    ring = raw[page.RING_OFFSET : page.RING_OFFSET + page.RING_ROWS * page.ROW.size]
    whole = ring[: len(ring) // page.ROW.size * page.ROW.size]
    rows = [
        PageStep(*fields)
        for *fields, again in page.ROW.iter_unpack(whole)
        if fields[0] == again and fields[0] >= max(1, since)
    ]
    return sorted(rows, key=lambda row: row.number)


def pages_of(pid: int, proc: Path = Path("/proc")) -> list[OpenPage]:
    """Every state page that a process holds, its own and one it inherited by a fork.

    Raises FileNotFoundError when there is no such process, PermissionError when it may not be
    looked at. Pages that are not valid are left out: anybody can name a memfd.
    """
    found = []
    for link in (proc / str(pid) / "fd").iterdir():
        try:
            if not os.readlink(link).startswith(f"/memfd:{page.NAME} "):
                continue
            # By now it may be a pipe that nobody writes to, put there to hold us up.
            fd = os.open(link, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        opened = _open(fd)
        if opened is not None:
            found.append(opened)
    return found


def _open(fd: int) -> OpenPage | None:
    for _ in range(READ_TRIES):
        try:
            return OpenPage(fd, hello_of(os.pread(fd, page.SIZE, 0)))
        except (ValueError, OSError):
            continue
    os.close(fd)
    return None
