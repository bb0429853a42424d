"""The directory of our sockets: only its owner may enter, or we do not use it."""

import os
import stat
import tempfile


def socket_directory() -> str:
    """`gpuwatch-UID` under the temp directory, made if need be.

    Not systemd's runtime directory: that goes with the user's last login and would take the socket
    of a run in tmux with it. Raises OSError as `make_safe`.
    """
    path = os.path.join(tempfile.gettempdir(), f"gpuwatch-{os.getuid()}")
    make_safe(path)
    return path


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
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise OSError(f"{path} can be entered by others (mode {stat.S_IMODE(found.st_mode):o})")


def socket_path(pid: int, start_ticks: int) -> str:
    """Where the socket of a process lies. The start time keeps a reused pid from taking it over.

    Raises OSError like `socket_directory`, and when the path is too long for a unix socket (107).
    """
    path = os.path.join(socket_directory(), f"{pid}-{start_ticks}.sock")
    if len(path) > 107:
        raise OSError(f"the socket's path is longer than 107 characters: {path}")
    return path
