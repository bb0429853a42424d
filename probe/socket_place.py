"""Where the socket lies, the key beside it, and what killed processes have left there.

The directory: only its owner may enter, or we do not use it. The key is a file that its owner alone
can read. Several people may share a user id (an account of a team, root in a container). The socket
lets all of them in; a request has to bear the key, so that nothing that reaches the socket by
accident, or through a mount that somebody else made, is watched by. Who can read the file may ask,
as with Jupyter's.
"""

import os
import socket
import stat
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final

from . import clock
from .private_files import OWN, create, remove

LONGEST_PATH: Final = 107
"""Bytes of a unix socket's path."""
NAMES: Final = ("gpuwatch-{uid}", "gpuwatch-{uid}-2", "gpuwatch-{uid}-3")
"""Below a directory for temporary files: whoever came first may have taken some of them."""
KEY_BYTES: Final = 16
YOUNG_S: Final = 60.0
"""A socket is bound before it listens: who is that young may be about to."""
MOST_LEFT: Final = 256
"""Looked at by one probe; the next looks at more."""


def socket_path(pid: int, start_ticks: int) -> str:
    """Where the socket of a process lies: in the first of the places that can be made safe. The
    start time keeps a reused pid from taking it over.

    Raises OSError with what is wrong with the first place where there is none.
    """
    reason: OSError | None = None
    for directory in _places():
        path = os.path.join(directory, f"{pid}-{start_ticks}.sock")
        try:
            if len(os.fsencode(path)) > LONGEST_PATH:
                raise OSError(f"the socket's path is longer than {LONGEST_PATH} characters: {path}")
            make_safe(directory)
            if not os.access(directory, os.W_OK | os.X_OK):
                raise OSError(f"{directory} cannot be written")
        except OSError as error:
            reason = reason or error
        else:
            return path
    raise reason or OSError("there is no directory for temporary files")


def make_safe(path: str) -> None:
    """Make the directory if need be, and look whether it is ours alone.

    Raises OSError when it is a link, somebody else's, or open to others, with a reason a person can
    read.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(f"{path} is not a directory")
    if found.st_uid != os.getuid():
        raise OSError(f"{path} belongs to user {found.st_uid}")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise OSError(f"{path} can be entered by others (mode {mode:o})")
    if mode & 0o700 != 0o700:
        os.chmod(path, 0o700)  # made under a umask that takes rights from its owner


def _places() -> Iterator[str]:
    """In the order in which they are tried.

    systemd's runtime directory comes late: it goes with the user's last login and would take the
    socket of a run in tmux with it. The working directory never: nobody would clean up there.
    """
    uid = os.getuid()
    for directory in _temporary():
        if os.path.isdir(directory):
            for name in NAMES:
                yield os.path.join(directory, name.format(uid=uid))
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    if os.path.isabs(runtime):
        yield os.path.join(runtime, "gpuwatch")
    yield f"/dev/shm/gpuwatch-{uid}"


def _temporary() -> list[str]:
    """As `tempfile.gettempdir` chooses, which must not be asked: it would keep its first answer,
    and a TMPDIR that the program sets later would not count."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    every = [chosen, *named, "/tmp", "/var/tmp", "/usr/tmp"]
    paths = (one for one in every if isinstance(one, str) and os.path.isabs(one))
    return list(dict.fromkeys(map(os.path.realpath, paths)))  # root's monitor follows few links


def make_key() -> str:
    """A new one."""
    return os.urandom(KEY_BYTES).hex()


def key_path(socket_path: str) -> str:
    """Where the key to this socket lies."""
    return socket_path.removesuffix(".sock") + ".key"


def write_key(socket_path: str, key: str) -> None:
    """Put it there, in place of what was there. Raises OSError where that cannot be done."""
    path = key_path(socket_path)
    made = f"{path}.new"
    remove(made)
    file = create(made)
    try:
        os.fchmod(file, OWN)  # whatever the umask
        os.write(file, key.encode())
    finally:
        os.close(file)
    os.rename(made, path)


def remove_key(socket_path: str) -> None:
    """Take it away."""
    remove(key_path(socket_path))


def is_key(given: str, key: str) -> bool:
    """Whether it is the key. Takes as long for a wrong one as for the right one."""
    mine, theirs = key.encode(), given.encode(errors="replace")
    return len(mine) == len(theirs) and not sum(a ^ b for a, b in zip(mine, theirs, strict=True))


def remove_leftovers(directory: str) -> None:
    """Remove the sockets in our directory that nobody listens at.

    Asked of the kernel and not known by the pid in the name: that may be another container's.
    """
    try:
        with os.scandir(directory) as entries:
            paths = [one.path for one in islice(entries, MOST_LEFT) if one.name.endswith(".sock")]
        for path in paths:
            if clock.unix_seconds() - os.lstat(path).st_mtime > YOUNG_S and _is_left(path):
                os.unlink(path)
                remove_key(path)
                _remove_windows(path)
    except OSError:
        return  # another probe was faster, or nothing may be removed here


def _remove_windows(socket_path: str) -> None:
    """What a window (`probe.deep`) has written and nobody has read."""
    stem = os.path.basename(socket_path).removesuffix(".sock") + "."
    with os.scandir(os.path.dirname(socket_path)) as entries:
        paths = [one.path for one in entries if one.name.startswith(stem)]
    for path in paths:
        if path.endswith((".trace", ".snapshot", ".worker", ".worker-part")):
            os.unlink(path)


def _is_left(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.setblocking(False)
        try:
            knock.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            pass  # it is busy, or not ours to enter
        return False
