"""Sockets of processes that were killed: nobody else would ever remove them."""

import os
import socket
from itertools import islice
from typing import Final

from . import clock
from .socket_key import remove_key

YOUNG_S: Final = 60.0
"""A socket is bound before it listens: who is that young may be about to."""
MOST: Final = 256
"""Looked at by one probe; the next looks at more."""


def remove_leftovers(directory: str) -> None:
    """Remove the sockets in our directory that nobody listens at.

    Asked of the kernel and not known by the pid in the name: that may be another container's.
    """
    try:
        with os.scandir(directory) as entries:
            paths = [one.path for one in islice(entries, MOST) if one.name.endswith(".sock")]
        for path in paths:
            if clock.unix_seconds() - os.lstat(path).st_mtime > YOUNG_S and _is_left(path):
                os.unlink(path)
                remove_key(path)
    except OSError:
        return  # another probe was faster, or nothing may be removed here


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
