"""The directory of our sockets: only its owner may enter, or we do not use it."""

import os
import stat
import sys
from collections.abc import Iterator
from typing import Final

LONGEST_PATH: Final = 107
"""Bytes of a unix socket's path."""
NAMES: Final = ("gpuwatch-{uid}", "gpuwatch-{uid}-2", "gpuwatch-{uid}-3")
"""Below a directory for temporary files: whoever came first may have taken some of them."""


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
