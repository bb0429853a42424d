"""The monitors that watch: who they are, what each is still owed, and which may look inside."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Final

from .recorder import Recorder

PPM: Final = 3_000
"""Part of the training thread's time that device marks may take while nobody asks for another: with
the host's marks a 20 ms step stays below 0.5 %. Measured on an H200: 50 to 160 us a stamped step
(reading an event fetches what the device wrote, 3 us each; caches are cold after a wait), so that
of steps of 2 ms one in 8 to 26 is stamped."""
PEER_TIMEOUT_NS: Final = 5_000_000_000
"""Monitors subscribe again every second; five silent seconds are a dead or stopped one."""
MOST_PEERS: Final = 16
SCOPE_FILE: Final = "/proc/sys/kernel/yama/ptrace_scope"
ANCESTORS_ONLY: Final = "1"
"""At 0 nobody needs to be let in, at 2 and 3 nobody can be."""
NOBODY: Final = 0
_PR_SET_PTRACER: Final = 0x59616D61
QUIET_NS: Final = 5_000_000_000
"""No mark for so long: half of what the monitor takes for a stall at the least."""
AGAIN_NS: Final = 5_000_000_000
"""Between two looks, and between two answers to one monitor."""
MOST_THREADS: Final = 32
MOST_FRAMES: Final = 64
MOST_TEXT: Final = 200
"""Characters of a name; of a file's its end. A dump has 3.3 MB at the very most, frames up to 4."""
OFF: Final = "commands to the probe are turned off (GPUWATCH_CONTROL=0)"


ThreadStack = tuple[str, bool, list[tuple[str, str, int]], bool]
"""The fields of `messages.ThreadStack`: name, training, frames, cut."""
Dump = tuple[int, list[ThreadStack], int, str]
"""The fields of `messages.Dump`: perf_counter_ns, threads, left out, why there are none."""
Place = tuple[CodeType, int]


def are_commands_off() -> bool:
    """The user has turned off whatever looks into the run on request; `OFF` says so."""
    return os.environ.get("GPUWATCH_CONTROL") == "0"


class Peer:
    """One monitor."""

    __slots__ = ("behind_ns", "device_ppm", "dumped_ns", "greeted", "names", "next", "pid", "rare",
                 "seen_ns", "sent_settings", "sequence")  # fmt: skip

    def __init__(self, seen_ns: int, pid: int) -> None:
        self.seen_ns = seen_ns
        self.pid = pid
        """By the kernel's word; 0 where it has none."""
        self.sequence = 0
        self.greeted = False
        self.next = 0
        """Number of the mark that it is to be sent next."""
        self.behind_ns = 0
        """How far it saw the device behind the host."""
        self.device_ppm = PPM
        """Part of the time that it asks device marks to take."""
        self.rare = 0
        """Number of the newest that it was sent of what stands beside the marks."""
        self.names = 0
        """Names of phases that it was sent."""
        self.sent_settings: dict[str, Any] = {}
        self.dumped_ns: int | None = None
        """When it was last given a dump."""

    def lost(self, rare: int) -> None:
        """A message to it was dropped: names, settings and what stands beside marks, which are sent
        once, are sent again. `rare`: what it was before."""
        self.names, self.sent_settings, self.rare = 0, {}, rare

    def names_to_send(self, names: dict[str, int]) -> list[str]:
        """All of them, if it lacks some."""
        if len(names) == self.names:
            return []
        self.names = len(names)
        return list(names)[: self.names]

    def settings_to_send(self, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The settings, unless it has just these; None as long as none are known."""
        if settings == self.sent_settings:
            return None
        self.sent_settings = settings
        return settings


class Peers:
    """All monitors, by the identity that the socket gave them."""

    def __init__(self) -> None:
        self._peers: dict[bytes, Peer] = {}

    def __bool__(self) -> bool:
        return bool(self._peers)

    def items(self) -> list[tuple[bytes, Peer]]:
        """A copy, so that peers may go while it is walked."""
        return list(self._peers.items())

    def known(self, identity: bytes) -> Peer | None:
        """The monitor; None while it has not subscribed."""
        return self._peers.get(identity)

    @property
    def newest_pid(self) -> int:
        """Of the monitor that came last; 0 without one."""
        return next((peer.pid for peer in reversed(self._peers.values())), 0)

    def subscribed(self, identity: bytes, pid: int, now_ns: int) -> Peer:
        """A monitor watches. Beyond `MOST_PEERS` the one silent for longest is forgotten."""
        peer = self._peers.get(identity)
        if peer is None:
            if len(self._peers) >= MOST_PEERS:
                oldest = min(self._peers, key=lambda one: self._peers[one].seen_ns)
                del self._peers[oldest]
            peer = self._peers[identity] = Peer(now_ns, pid)
        peer.seen_ns = now_ns
        return peer

    def left(self, identity: bytes) -> None:
        """A monitor leaves."""
        self._peers.pop(identity, None)

    def drop_silent(self, now_ns: int, pid_of: Callable[[bytes], int | None]) -> None:
        """Forget those that have been silent for `PEER_TIMEOUT_NS`, and those whose connection is
        ended: `pid_of` has no process for them."""
        for identity, peer in self.items():
            if now_ns - peer.seen_ns > PEER_TIMEOUT_NS or pid_of(identity) is None:
                del self._peers[identity]


class Tracer:
    """The one process that may look into this one where the kernel lets only ancestors do so (Yama,
    scope 1). Called on the publisher's thread only.

    py-spy reads stacks from outside, and the monitor is seldom our ancestor. So the process of the
    attached monitor is let in, with those that it starts, for as long as it watches: no other, and
    of several monitors the one that came last. Which process that is, the kernel says of the
    socket's other end (SO_PEERCRED): one that a peer names could be any. GPUWATCH_CONTROL=0 lets
    nobody in.
    """

    def __init__(
        self, let: Callable[[int], object] | None = None, scope_file: str = SCOPE_FILE
    ) -> None:
        self._let = let or _let_in
        wanted = not are_commands_off()
        self._needed = wanted and _scope(scope_file) == ANCESTORS_ONLY
        self._pid = NOBODY

    def allow(self, pid: int) -> None:
        """From now on this process, as the kernel named it at the other end of the socket, and no
        other; with NOBODY, or once it has ended, none."""
        if not self._needed:
            return
        if pid != NOBODY and not _is_allowed(pid):
            pid = NOBODY
        if pid != self._pid and self._let(pid) is not False:
            self._pid = pid


def _scope(file: str) -> str:
    try:
        with open(file) as scope:
            return scope.read().strip()
    except OSError:
        return ""  # a kernel without Yama


def _is_allowed(pid: int) -> bool:
    """Whether it lives and, as seen from here, is our user's or root's: pids of another container
    mean somebody else. Not the first of all: everybody descends from that one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            lives = stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
        return pid > 1 and lives and os.stat(f"/proc/{pid}").st_uid in (os.getuid(), 0)
    except OSError:
        return False


def _let_in(pid: int) -> bool:
    """What the kernel refuses stays as it was: the stacks' reader says so to the person. False
    until the program has imported ctypes, as torch does: the publisher imports nothing."""
    ctypes: Any = sys.modules.get("ctypes")
    if not hasattr(ctypes, "PyDLL"):  # of the classes that it defines one of the last
        return False
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    return True


class Dumps:
    """Where every thread is, seen from within: for when nothing moves and py-spy may not look.

    Only then: shares from such a look are wrong by a factor of ten (a thread that computes in C
    gives the lock up at few places), a thread that does not move is where it is. So a look is
    refused while marks come, one serves every monitor for a while, and its size is bounded. It is
    taken on the publisher's thread: 0.06 ms for 5 threads, 0.45 ms for 41. GPUWATCH_CONTROL=0
    turns it off.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._off = are_commands_off()
        self._last: Dump | None = None

    def for_peer(self, peer: Peer | None, now_ns: int) -> Dump | None:
        """What to answer; None to who does not watch or has just had an answer, and while steps
        progress."""
        if peer is None or (peer.dumped_ns is not None and now_ns - peer.dumped_ns < AGAIN_NS):
            return None
        if self._off:
            peer.dumped_ns = now_ns
            return now_ns, [], 0, OFF
        marked_ns = self._recorder.newest()[0]
        if now_ns - marked_ns < QUIET_NS:
            return None
        peer.dumped_ns = now_ns
        last = self._last
        if last is None or last[0] < marked_ns or now_ns - last[0] >= AGAIN_NS:
            self._last = last = dump(self._recorder.owner, now_ns)
        return last


def dump(owner: int, now_ns: int) -> Dump:
    """Of all threads but this one; `owner` is the training thread, 0 where there is none."""
    training = owner or threading.main_thread().ident
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    idents = sorted(frames, key=lambda ident: (ident != training, ident))
    # What a frame holds must not live longer for us than it would have.
    places = {
        ident: list(islice(_places(frames.pop(ident)), MOST_FRAMES + 1))
        for ident in idents[:MOST_THREADS]
    }
    frames.clear()
    names = _names()
    threads = [
        (
            names.get(ident, f"thread {ident}")[:MOST_TEXT],
            ident == training,
            [_frame(place) for place in reversed(found[:MOST_FRAMES])],
            len(found) > MOST_FRAMES,
        )
        for ident, found in places.items()
    ]
    return now_ns, threads, len(idents) - len(threads), ""


def stack_of(owner: int) -> list[tuple[str, str, int]]:
    """Function, file and line of the training thread's frames, outermost first."""
    frame = sys._current_frames().get(owner or threading.main_thread().ident or 0)
    places = list(islice(_places(frame), MOST_FRAMES))
    del frame
    return [_frame(place) for place in reversed(places)]


def _places(frame: FrameType | None) -> Iterator[Place]:
    """From the innermost on."""
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0
        frame = frame.f_back


def _frame(place: Place) -> tuple[str, str, int]:
    code, line = place
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return name[:MOST_TEXT], code.co_filename[-MOST_TEXT:], line


def _names() -> dict[int, str]:
    """Not by `threading.enumerate`: it takes a lock, and that one may be what nothing moves for."""
    active: dict[int, threading.Thread] = getattr(threading, "_active", {})
    return {ident: thread.name for ident, thread in active.copy().items()}
