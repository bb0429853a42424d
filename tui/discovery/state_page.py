"""State pages of probes: which exist, whether to trust them, and what this user may read."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...probe.wire import page
from ...probe.wire.marks import MARK_BYTES, RING
from ..messages import Hello, decode_hello


def sees_our_files(pid: int) -> bool:
    """Whether a process has our root and our mounts: in a container it has its own.

    Raises FileNotFoundError where there is no such process, PermissionError where it is somebody
    else's.
    """
    if os.readlink(f"/proc/{pid}/root") != "/":
        return False
    return os.path.samefile(f"/proc/{pid}/ns/mnt", "/proc/self/ns/mnt")


# Where the system does not let this user read a process.

PROC: Final = Path("/proc")
ANCESTORS_ONLY: Final = 1
"""Yama's scope in which a process is open to those alone that started it, and to whom it lets in
itself: the probe lets in the monitor that came last."""
ROOT_ONLY: Final = 2
NOBODY: Final = 3
CAP_ADD: Final = "start the container with --cap-add=SYS_PTRACE"


def ptrace_scope(proc: Path = PROC) -> int | None:
    """Yama's; None where the kernel has no Yama."""
    try:
        return int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def no_stacks(scope: int | None, contained: bool) -> tuple[str, str]:
    """Why the system lets nobody read the stacks of a process, and what changes that ("" where
    nothing does). `contained`: a container forbids it, as it must be where root is refused."""
    yama = "" if scope is None else f" (yama ptrace_scope={scope})"
    if scope is not None and scope >= NOBODY:
        return f"until a reboot no program may read the stacks of another{yama}", ""
    if contained:
        return "in this container no program may read the stacks of another", CAP_ADD
    if scope == ROOT_ONLY:
        return f"only root may read the stacks of a program here{yama}", "run gpuwatch as root"
    if scope == ANCESTORS_ONLY:
        return (
            f"only what started a program may read its stacks here{yama}",
            "sudo sysctl kernel.yama.ptrace_scope=0, or start it with gpuwatch run, or run "
            "gpuwatch as root",
        )
    return "this user may not read the stacks of that program", "run gpuwatch as root"


def is_root() -> bool:
    """Whether this program has all rights that a user can have here."""
    return os.geteuid() == 0


def refused_because(rule: str) -> str:
    """Why the system refused: the rule, which is not the reason where root asks."""
    return "The system refuses it to root too." if is_root() else rule


def with_rights(command: str) -> str:
    """How to get the rights for a command: root has them, but in a container without the leave to
    look into processes."""
    if is_root():
        return "A container may forbid it to root: start it with --cap-add=SYS_PTRACE"
    return f"Try: sudo $(which gpuwatch) {command.removeprefix('gpuwatch ')}"


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
    marks: int
    state: int


class OpenPage:
    """A page held open by descriptor, so that it can be read after its process has died."""

    def __init__(self, fd: int, hello: Hello) -> None:
        self._fd = fd
        self.hello = hello

    def words(self) -> Words:
        """What the process does now. Raises OSError when the page cannot be read."""
        raw = os.pread(self._fd, page.WORDS * 8, 0)
        values = [int.from_bytes(raw[i * 8 : i * 8 + 8], "little") for i in range(page.WORDS)]
        open_word, heartbeat_ns = values[page.WORD_OPEN], values[page.WORD_HEARTBEAT]
        open_kind, open_since_ns = page.unpack_open(open_word, heartbeat_ns)
        return Words(
            open_kind=open_kind,
            open_since_ns=open_since_ns,
            steps=values[page.WORD_STEPS],
            heartbeat_ns=heartbeat_ns,
            lost_marks=values[page.WORD_LOST_MARKS],
            marks=values[page.WORD_MARKS],
            state=values[page.WORD_STATE],
        )

    def marks(self, since: int) -> tuple[int, bytes]:
        """(first number, body) of the marks from a number on, of those that the publisher does not
        write over meanwhile."""
        until = int.from_bytes(os.pread(self._fd, 8, page.WORD_MARKS * 8), "little")
        since = max(since, until - RING // 2)
        places = page.places(since, until)
        return since, b"".join([os.pread(self._fd, size, offset) for offset, size in places])

    def reread_hello(self) -> Hello:
        """The hello as it is now: it changes when the probe disarms or loses its socket."""
        self.hello = hello_of(os.pread(self._fd, page.RING_OFFSET, 0))
        return self.hello

    def close(self) -> None:
        """Let go of the page."""
        os.close(self._fd)


def hello_of(raw: bytes) -> Hello:
    """The hello of a page.

    Raises ValueError when the page is not ours, is cut short, or has another layout's version.
    """
    if len(raw) < page.RING_OFFSET:
        raise ValueError(f"a state page has at least {page.RING_OFFSET} bytes, this has {len(raw)}")
    header = page.HEADER.unpack_from(raw, page.HEADER_OFFSET)
    magic, version, hello_bytes, ring_marks, mark_bytes = header
    if magic != page.MAGIC:
        raise ValueError("not a gpuwatch state page")
    if version != page.LAYOUT_VERSION:
        raise ValueError(
            f"the page has layout {version}, this gpuwatch reads {page.LAYOUT_VERSION}"
        )
    if hello_bytes > page.HELLO_BYTES or (mark_bytes, ring_marks) != (MARK_BYTES, RING):
        raise ValueError("the page's header does not describe a page of this layout")
    return decode_hello(raw[page.HELLO_OFFSET : page.HELLO_OFFSET + hello_bytes])


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
            return OpenPage(fd, hello_of(os.pread(fd, page.RING_OFFSET, 0)))
        except (ValueError, OSError):
            continue
    os.close(fd)
    return None
