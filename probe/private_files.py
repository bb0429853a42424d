"""Files of the probe, which this user alone may read, and which may be gone at any time."""

import os
from typing import Final

OWN: Final = 0o600


def create(path: str) -> int:
    """A descriptor to write a new file by. Raises OSError where there is one, or a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, OWN)


def remove(path: str) -> None:
    """Take a file away, if it is there and this user may."""
    try:
        os.unlink(path)
    except OSError:
        pass
