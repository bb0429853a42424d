"""The monitors that watch: who they are, and what each is still owed."""

from collections.abc import Callable
from typing import Final

from .device.budget import PPM
from .settings.reading import Reading

PEER_TIMEOUT_NS: Final = 5_000_000_000
"""Monitors subscribe again every second; five silent seconds are a dead or stopped one."""
MOST_PEERS: Final = 16


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
        self.sent_settings: Reading | None = None
        self.dumped_ns: int | None = None
        """When it was last given a dump."""

    def names_to_send(self, names: dict[str, int]) -> list[str]:
        """All of them, if it lacks some."""
        if len(names) == self.names:
            return []
        self.names = len(names)
        return list(names)[: self.names]

    def settings_to_send(self, settings: Reading) -> Reading | None:
        """The settings, unless it has just these; None as long as none are known."""
        if settings == (self.sent_settings or Reading()):
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
        gone: `pid_of` has no process for them."""
        for identity, peer in self.items():
            if now_ns - peer.seen_ns > PEER_TIMEOUT_NS or pid_of(identity) is None:
                del self._peers[identity]
