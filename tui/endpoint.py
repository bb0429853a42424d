"""Where a probe is heard: at its socket as seen from here, and only if nobody else can have put it
there."""

import os
import stat

from probe.wire.messages import Hello
from tui.errors import NotPermittedError


def sees_our_files(pid: int) -> bool:
    """Whether a process has our root and our mounts: in a container it has its own.

    Raises FileNotFoundError where there is no such process, PermissionError where it is somebody
    else's.
    """
    if os.readlink(f"/proc/{pid}/root") != "/":
        return False
    return os.path.samefile(f"/proc/{pid}/ns/mnt", "/proc/self/ns/mnt")


def reachable(endpoint: str, pid: int) -> str:
    """The endpoint as seen from here: through the process's own root where it has other files, also
    where a file of that name is here too."""
    path = endpoint.removeprefix("ipc://")
    seen = _seen_from_here(path, pid)
    return endpoint if seen == path else f"ipc://{seen}"


def check_socket_directory(hello: Hello, pid: int, uid: int) -> bool:
    """Refuse a socket that somebody else could have put there. Raises NotPermittedError.

    Whether its directory is there: as long as it is not, anybody could make it, so this has to be
    asked again right before something connects.
    """
    if hello.endpoint is None:
        return False
    if not hello.endpoint.startswith("ipc:///"):
        raise NotPermittedError(
            f"the process wants to be watched at {hello.endpoint}",
            "A probe has its socket in a directory of its own, and nowhere else.",
        )
    directory = _seen_from_here(os.path.dirname(hello.endpoint.removeprefix("ipc://")), pid)
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return False  # removed: the probe makes it again
    if (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == uid
        and not stat.S_IMODE(found.st_mode) & 0o077
    ):
        return True
    raise NotPermittedError(
        f"{directory} cannot be trusted",
        f"It has to be a directory of user {uid} that nobody else can enter.",
        "Remove it; the probe makes it anew within seconds.",
    )


def _seen_from_here(path: str, pid: int) -> str:
    try:
        return path if sees_our_files(pid) else f"/proc/{pid}/root{path}"
    except OSError:
        return path  # it has ended meanwhile: nobody listens at either
