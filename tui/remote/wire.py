"""An agent's end of its link: two descriptors that never block, and a door for who comes back."""

import os
import select
import socket
import stat
import struct
import tempfile
from pathlib import Path
from typing import Final

from .frames import MOST_REQUEST_BYTES, Frame, FrameReader

READ_BYTES: Final = 65_536


class Wire:
    """Frames in and bytes out; nothing here waits longer than it is asked to."""

    def __init__(self, into: int, out: int, most_bytes: int = MOST_REQUEST_BYTES) -> None:
        self._into = into
        self._out = out
        self._reader = FrameReader(most_bytes)
        self._unsent = bytearray()
        os.set_blocking(into, False)
        os.set_blocking(out, False)

    @property
    def is_drained(self) -> bool:
        """The other side, or what carries the bytes there, has taken everything."""
        return not self._unsent

    def send(self, data: bytes) -> None:
        """Send it, now or while somebody polls. Raises OSError where nobody takes it any more."""
        self._unsent += data
        self._flush()

    def poll(self, wait_s: float, beside: int | None = None) -> list[Frame] | None:
        """The frames that have come after so long at most, or as soon as any has, or as soon as
        the descriptor `beside` has something; None where the other side has closed it.

        Raises OSError as `send` does, LinkError for bytes that are no frames."""
        reads = [self._into] if beside is None else [self._into, beside]
        writes = [self._out] if self._unsent else []
        ready, takes, _ = select.select(reads, writes, [], max(0.0, wait_s))
        if takes:
            self._flush()
        if self._into not in ready:
            return []
        try:
            data = os.read(self._into, READ_BYTES)
        except BlockingIOError:
            return []
        return self._reader.feed(data) if data else None

    def take_rest(self) -> bytes:
        """Bytes that have come and are no whole frame yet."""
        return self._reader.take_rest()

    def drain(self, limit_s: float) -> None:
        """Wait until everything is taken, or for so long."""
        try:
            while self._unsent and select.select([], [self._out], [], limit_s)[1]:
                self._flush()
        except OSError:
            pass  # nobody is left to take it

    def close(self) -> None:
        """Let go of both."""
        for descriptor in {self._into, self._out}:
            try:
                os.close(descriptor)
            except OSError:
                pass

    def _flush(self) -> None:
        while self._unsent:
            try:
                written = os.write(self._out, self._unsent[:READ_BYTES])
            except BlockingIOError:
                return
            del self._unsent[:written]


def relay(near: Wire, into: int, out: int, door: socket.socket, first: bytes) -> None:
    """Carry bytes between this process's link and the agent behind the door until one side ends."""
    door.sendall(first + near.take_rest())
    for descriptor in (into, out):
        os.set_blocking(descriptor, True)
    door.setblocking(True)
    while True:
        ready = select.select([into, door.fileno()], [], [])[0]
        if into in ready:
            data = os.read(into, READ_BYTES)
            if not data:
                return
            door.sendall(data)
        if door.fileno() in ready:
            data = door.recv(READ_BYTES)
            if not data:
                return
            left = memoryview(data)
            while left:
                left = left[os.write(out, left) :]


# The door: a socket in a directory that only its user may enter, as long as an agent is asked to
# keep what it collects for a link that comes back.

CREDENTIALS: Final = struct.Struct("3i")


class DoorError(Exception):
    """There can be no door here, and why."""


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"gpuwatch-{os.geteuid()}"


def _path(token: str) -> Path:
    """Raises DoorError for a token that is none: it comes from the other side."""
    if not token.isalnum() or len(token) > 64:
        raise DoorError("no such agent")
    return _folder() / f"agent-{token}.sock"


def _check_folder(folder: Path) -> None:
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.geteuid():
        raise DoorError(f"{folder} is not private to this user")


class Door:
    """Where the next link of the same person comes in."""

    def __init__(self, token: str) -> None:
        """Raises DoorError or OSError where there can be none."""
        self._path = _path(token)
        folder = self._path.parent
        self._made_folder = not folder.exists()
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_folder(folder)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(str(self._path))
            self._socket.listen(1)
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def accept(self) -> Wire | None:
        """Who came; None where nobody has, or somebody else than this user."""
        try:
            come, _ = self._socket.accept()
        except OSError:
            return None
        raw = come.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        _, uid, _ = CREDENTIALS.unpack(raw)
        if uid != os.geteuid():
            come.close()
            return None
        descriptor = come.detach()
        return Wire(descriptor, descriptor)

    def close(self) -> None:
        """Leave nothing behind."""
        self._socket.close()
        try:
            self._path.unlink()
            if self._made_folder:
                self._path.parent.rmdir()
        except OSError:
            pass  # it is removed, or a probe has its socket in the folder by now


def knock(token: str) -> socket.socket | None:
    """A connection to the agent that is kept under this token; None where there is none."""
    try:
        path = _path(token)
        _check_folder(path.parent)
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.connect(str(path))
        except OSError:
            found.close()
            path.unlink()  # of an agent that was killed
            return None
        return found
    except (DoorError, OSError):
        return None
