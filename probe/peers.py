"""The monitors that watch: who they are, and what each is still owed."""

from dataclasses import dataclass, field
from typing import Final

from .rows import Loader
from .settings.reading import Reading

PEER_TIMEOUT_NS: Final = 5_000_000_000
"""Monitors say every second that they watch; five silent seconds are a dead or stopped one."""
MOST_PEERS: Final = 16


@dataclass(slots=True)
class Peer:
    """One monitor."""

    seen_ns: int
    pid: int
    """As it says."""
    sequence: int = 0
    greeted: bool = False
    told: list[Loader] = field(default_factory=list)
    """The loaders as it last heard of them."""
    told_settings: Reading | None = None
    dumped_ns: int | None = None
    """When it was last given a dump."""

    def loaders_to_tell(self, loaders: list[Loader]) -> list[Loader]:
        """Those that changed since it was last told."""
        changed = [loader for loader in loaders if loader not in self.told]
        self.told = loaders
        return changed

    def settings_to_tell(self, settings: Reading) -> Reading | None:
        """The settings, if it was not told just these; None as long as there is nothing to tell."""
        if settings == (self.told_settings or Reading()):
            return None
        self.told_settings = settings
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

    def heard(self, identity: bytes, pid: int, now_ns: int) -> Peer:
        """A monitor spoke. Beyond `MOST_PEERS` the one heard longest ago is forgotten."""
        peer = self._peers.get(identity)
        if peer is None:
            if len(self._peers) >= MOST_PEERS:
                oldest = min(self._peers, key=lambda one: self._peers[one].seen_ns)
                del self._peers[oldest]
            peer = self._peers[identity] = Peer(now_ns, pid)
        peer.seen_ns = now_ns
        return peer

    def left(self, identity: bytes) -> None:
        """A monitor said good-bye."""
        self._peers.pop(identity, None)

    def drop_silent(self, now_ns: int) -> None:
        """Forget those that have not been heard for `PEER_TIMEOUT_NS`."""
        for identity, peer in self.items():
            if now_ns - peer.seen_ns > PEER_TIMEOUT_NS:
                del self._peers[identity]
