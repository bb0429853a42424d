"""The key to a socket: a file beside it that its owner alone can read.

Several people may share a user id (an account of a team, root in a container). The socket lets all
of them in; a request has to bear the key, so that nothing that reaches the socket by accident, or
through a mount that somebody else made, is watched by. Who can read the file may ask, as with
Jupyter's.
"""

import os
from typing import Final

KEY_BYTES: Final = 16
OWN: Final = 0o600


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
    try:
        os.unlink(made)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(made, flags, OWN)
    try:
        os.fchmod(file, OWN)  # whatever the umask
        os.write(file, key.encode())
    finally:
        os.close(file)
    os.rename(made, path)


def remove_key(socket_path: str) -> None:
    """Take it away."""
    try:
        os.unlink(key_path(socket_path))
    except OSError:
        pass  # somebody has, or nobody may


def is_key(given: str, key: str) -> bool:
    """Whether it is the key. Takes as long for a wrong one as for the right one."""
    mine, theirs = key.encode(), given.encode(errors="replace")
    return len(mine) == len(theirs) and not sum(a ^ b for a, b in zip(mine, theirs, strict=True))
