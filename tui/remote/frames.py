"""What both ends of a link say, frame by frame, with bounds on all of it.

    an agent begins with GREETING, which sets it apart from what a login shell may print before
    frames   u8 kind, u32 length, u32 CRC-32 of kind and body (little-endian), then `length` bytes,
             and a line feed: srun hands on whole lines

Whoever reads a frame that breaks a bound ends the link: after a wrong length nothing can be
trusted. Bodies are JSON, but for ENTRIES (`coding`), CREDIT and the two of a round trip.
"""

import struct
import zlib
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

import msgspec

from ..messages import Hello
from ..recording import format as form
from ..recording.format import Header

GREETING: Final = b"\nGPUWATCH-LINK\n"
PROTOCOL: Final = 1
"""Raised when an older side would misread. Structs may gain fields without it."""
OLDEST: Final = 1
"""The oldest protocol that this side still speaks."""
CODING: Final = form.VERSION
"""Entries are coded as in a recording of this version."""

HEAD: Final = struct.Struct("<BII")
END: Final = b"\n"
CREDIT: Final = struct.Struct("<I")
PING: Final = struct.Struct("<q")
PONG: Final = struct.Struct("<qqd")
"""The near side's time that the ping bore, and the agent's clock and time of day at that moment."""
MOST_BYTES: Final = form.MOST_FRAME_BYTES
MOST_REQUEST_BYTES: Final = 16_384
"""Of what the near side sends."""
MOST_TEXT: Final = 500
"""Characters of a message for a person that are kept."""
WINDOW: Final = 8
"""Frames of entries under way at once: two seconds at four a second, more than a round trip takes
on any link that a screen is of use on."""


class Kind(IntEnum):
    """Of a frame; none is 10, a line feed."""

    HELLO = 1
    """The agent's first: what it is."""
    WATCHING = 2
    ENTRIES = 3
    PONG = 4
    LISTING = 5
    FAULT = 6
    OVER = 7
    """The run has ended, and so does the agent."""
    NODE = 8
    """Its host's ranks, of a job over several hosts."""
    HOSTS = 9
    """The answer to ROSTER."""
    WATCH = 65
    LIST = 66
    CREDIT = 67
    PING = 68
    ROSTER = 70
    """Which hosts does the job of this process run on?"""
    BYE = 69
    """The near side leaves for good: nothing is kept for it."""


class LinkHello(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is."""

    protocol: int
    oldest: int
    coding: int
    gpuwatch: str
    python: str
    host: str


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """A link that was lost, and what came of it."""

    token: str
    after: int
    """Number of the last entry that arrived."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """Watch this process."""

    protocol: int
    pid: int
    stacks: bool = True
    whole_argv: bool = False
    window: int = WINDOW
    keep_s: float = 0.0
    """After a lost link, collect on for so long for whoever comes back."""
    kinds: tuple[str, ...] = ()
    """Of entries that the near side knows; (): all."""
    node_every: int = 0
    """Report all ranks of this process's job there, with the collectives of one step in so many;
    0: do not."""
    ranks_alone: bool = False
    """Nothing but that."""
    resume: Resume | None = None


class Watching(msgspec.Struct, frozen=True, kw_only=True):
    """It is watched."""

    pid: int
    """As it is called over there, outside of any container."""
    header: Header
    token: str
    """What a lost link is taken up again by; "" where nothing is kept."""
    now_ns: int
    """The agent's clock, that of the entries."""
    notes: tuple[str, ...] = ()
    resumed: bool = False
    """It is the agent of the lost link, and what it has kept follows."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A process that can be watched over there: a `Candidate` of the other side."""

    pid: int
    user: str
    script: str
    hello: Hello | None = None
    """Of its probe; without passwords and tokens on the command line."""
    steps: int = 0
    launcher_pid: int | None = None
    launcher: str = ""
    arguments: tuple[str, ...] = ()
    folder: str = ""
    started_unix: float | None = None
    gpus: tuple[int, ...] = ()
    on_gpu: bool = False
    job: tuple[str, ...] = ()
    """Of a rank: where the ranks of its job meet; () where only its host knows."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    processes: tuple[Listed, ...]
    now_unix: float


class AskRoster(msgspec.Struct, frozen=True, kw_only=True):
    """Which hosts does the job of this process run on?"""

    pid: int


class Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known there; no host is asked for that alone."""

    hosts: tuple[str, ...] = ()
    source: str = ""
    """Who says so: "NCCL RAS", "SLURM"; "" where nobody does."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why it cannot be: a GpuwatchError of the other side."""

    what: str
    why: str = ""
    fix: str = ""
    exit_code: int = 1


class Frame(NamedTuple):
    """One frame, checked but not decoded."""

    kind: int
    body: bytes


class LinkError(Exception):
    """The other side breaks the rules of the link."""


_Message = TypeVar("_Message", bound=msgspec.Struct)


def frame(kind: Kind, body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return HEAD.pack(kind, len(body), _check(kind, body)) + body + END


def message(kind: Kind, content: msgspec.Struct) -> bytes:
    """The bytes of a frame whose body is this struct."""
    return frame(kind, msgspec.json.encode(content))


def decoded(body: bytes, kind: type[_Message]) -> _Message:
    """The struct in a body. Raises LinkError where it is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise LinkError(f"a {kind.__name__} that makes no sense: {clean(str(error))}") from None


def clean(text: str) -> str:
    """A line for a person, without what commands a terminal, and no longer than a person reads."""
    kept = "".join(char if char.isprintable() else " " for char in text[: MOST_TEXT + 1])
    return kept if len(text) <= MOST_TEXT else kept[: MOST_TEXT - 1] + "…"


def check_versions(hello: LinkHello) -> None:
    """Raises LinkError where the two cannot speak with each other."""
    if hello.oldest > PROTOCOL or hello.protocol < OLDEST or hello.coding != CODING:
        ours = f"protocol {PROTOCOL}, coding {CODING}"
        raise LinkError(f"it speaks protocol {hello.protocol}, coding {hello.coding}; here {ours}")


def _check(kind: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(bytes((kind,))))


class FrameReader:
    """Bytes in, frames out; holds less than one frame of the largest size."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole by now. Raises LinkError for bytes that are none."""
        self._held += data
        found: list[Frame] = []
        at = 0
        while True:
            while self._held[at : at + 1] == END:
                at += 1
            if len(self._held) - at < HEAD.size:
                break
            kind, length, check = HEAD.unpack_from(self._held, at)
            if length > self._most_bytes:
                raise LinkError(f"a frame of {length:,} bytes, more than {self._most_bytes:,}")
            end = at + HEAD.size + length
            if len(self._held) < end:
                break
            body = bytes(self._held[at + HEAD.size : end])
            if _check(kind, body) != check:
                raise LinkError("a frame that has changed on its way, or is none")
            found.append(Frame(kind, body))
            at = end
        del self._held[:at]
        return found

    def take_rest(self) -> bytes:
        """What is no whole frame yet; it is held no longer."""
        rest = bytes(self._held)
        self._held.clear()
        return rest
