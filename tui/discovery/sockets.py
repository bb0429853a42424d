"""The probe's socket, held by its inode: what was checked is what is connected to.

A path is another thing a moment later. Root's monitor would be led to a socket of root's by a link
in it, or by one that replaces a part of it after the check. So the path is walked component by
component from the process's own root, the socket is held open, and connecting goes through
/proc/self/fd, which names that very socket.
"""

import os
import stat
from contextlib import suppress
from typing import Final, NamedTuple

from ..errors import NotPermittedError
from ..messages import Hello
from .state_page import sees_our_files

MOST_LINKS: Final = 8
LONGEST_KEY: Final = 256
AGAIN: Final = "Remove it: the probe makes it again within seconds."


class HeldSocket(NamedTuple):
    """A socket that was checked."""

    descriptor: int
    """Holds its inode, without opening it."""
    key: str
    """What requests have to bear; "" for a probe that has none."""

    @property
    def address(self) -> str:
        """Where to connect to."""
        return f"ipc:///proc/self/fd/{self.descriptor}"

    @property
    def is_removed(self) -> bool:
        """Its file is removed: the probe has made another by now, or will."""
        return os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def open_socket(endpoint: str, pid: int, uid: int) -> HeldSocket | None:
    """The socket that a process of this user names, and its key; None while it is not there.

    Raises NotPermittedError where somebody else could have put it there.
    """
    if not endpoint.startswith("ipc:///"):
        raise NotPermittedError(
            f"the process names {endpoint} as its socket",
            "A probe only opens a socket in a directory of its own.",
        )
    *folders, name = endpoint.removeprefix("ipc:///").split("/")
    try:
        root = os.open(_root_of(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    directory = _walk(root, folders)
    if directory is None:
        return None
    try:
        _check_directory(directory, uid, "/" + "/".join(folders))
        try:
            held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            return None
        key = _key_beside(name, directory, uid)
    finally:
        os.close(directory)
    found = os.fstat(held)
    if stat.S_ISSOCK(found.st_mode) and found.st_uid == uid:
        return HeldSocket(held, key)
    os.close(held)
    raise NotPermittedError(
        f"{endpoint.removeprefix('ipc://')} cannot be trusted",
        f"It has to be a socket of user {uid}, and no link to one.",
        AGAIN,
    )


def take_beside(endpoint: str, name: str, pid: int, uid: int) -> int:
    """A descriptor of a file of the probe's that lies beside its socket, to be read and closed. The
    file is removed, where we may; else the probe does it after a while.

    Raises NotPermittedError where somebody else could have put it there, OSError where it is gone.
    """
    *folders, _ = endpoint.removeprefix("ipc:///").split("/")
    root = os.open(_root_of(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    directory = _walk(root, folders)
    if directory is None:
        raise FileNotFoundError(name)
    try:
        if "/" in name:
            raise NotPermittedError(f"{name} does not lie beside the probe's socket")
        _check_directory(directory, uid, "/" + "/".join(folders))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(name, flags, dir_fd=directory)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_uid == uid:
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)
            return file
        os.close(file)
    finally:
        os.close(directory)
    raise NotPermittedError(f"{name} is no file of user {uid}", "", AGAIN)


def check_socket(hello: Hello, pid: int, uid: int) -> None:
    """Raises NotPermittedError for a socket that somebody else could have put there. Asked early,
    for a person; `open_socket` asks again as something connects."""
    held = None if hello.endpoint is None else open_socket(hello.endpoint, pid, uid)
    if held is not None:
        held.close()


def _key_beside(name: str, directory: int, uid: int) -> str:
    """Neither a link nor a pipe is read, and nothing of another user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(f"{name.removesuffix('.sock')}.key", flags, dir_fd=directory)
    except OSError:
        return ""
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != uid:
            return ""
        return os.read(file, LONGEST_KEY).decode("ascii", "replace")
    finally:
        os.close(file)


def _root_of(pid: int) -> str:
    try:
        return "/" if sees_our_files(pid) else f"/proc/{pid}/root"
    except OSError:
        return "/"  # it has ended meanwhile: nobody listens at either


def _walk(root: int, parts: list[str]) -> int | None:
    """The directory below `root`, which is closed. A link is followed if it is root's or our own:
    an administrator's /tmp. Within this root: one that leaves it, or goes up, is not."""
    at, left, links = os.dup(root), list(parts), 0
    try:
        while left:
            part = left.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                raise _untrusted(parts)
            below = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            found = os.fstat(below)
            if not stat.S_ISLNK(found.st_mode):
                os.close(at)
                at = below
                continue
            target, links = os.readlink("", dir_fd=below), links + 1
            os.close(below)
            if found.st_uid not in (0, os.geteuid()) or links > MOST_LINKS:
                raise _untrusted(parts)
            left[:0] = target.split("/")
            if target.startswith("/"):
                os.close(at)
                at = os.dup(root)
        taken, at = at, -1
        return taken
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise _untrusted(parts) from None
    finally:
        os.close(root)
        if at >= 0:
            os.close(at)


def _check_directory(directory: int, uid: int, name: str) -> None:
    found = os.fstat(directory)
    if (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == uid
        and not stat.S_IMODE(found.st_mode) & 0o077
    ):
        return
    raise NotPermittedError(
        f"{name} cannot be trusted",
        f"It has to be a directory of user {uid} that nobody else can enter.",
        AGAIN,
    )


def _untrusted(parts: list[str]) -> NotPermittedError:
    return NotPermittedError(
        f"/{'/'.join(parts)} cannot be trusted",
        "A link on the way to it could lead anywhere.",
        "Start the run with another TMPDIR.",
    )
