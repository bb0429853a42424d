"""Files that we write: recordings, reports, pictures. They hold lines of code, names and command
lines, so they are their owner's alone until that person shares them."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

OWN: Final = 0o600
"""Of files that we write: they hold lines of code and names, and only who owns them shares them."""


def only_ours(path: str, flags: int) -> int:
    """For `open`: the file is its owner's alone, and a link is followed only where it is our own.

    A file that was there loses what others might do. Raises OSError where it is another user's.
    """
    try:
        link = os.lstat(path)
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0):
            raise PermissionError(errno.EPERM, f"a link of user {link.st_uid}", path)
    except FileNotFoundError:
        pass
    descriptor = os.open(path, flags & ~os.O_TRUNC, OWN)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            if found.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, f"it belongs to user {found.st_uid}", path)
            os.fchmod(descriptor, OWN)
            if flags & os.O_TRUNC:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_whole(path: Path, data: bytes, new: bool) -> None:
    """Write all of it, or leave no file: a full disk else leaves an empty one. `new`: only where
    nothing is there yet. Raises OSError."""
    with open(path, "xb" if new else "wb", opener=only_ours) as file:
        try:
            file.write(data)
            file.flush()
        except OSError:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                with suppress(OSError):
                    path.unlink()
            raise
