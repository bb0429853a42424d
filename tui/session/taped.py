"""What a session tells whoever keeps it for a recording."""

from typing import Protocol

from tui.observations import AnyObservation


class Tape(Protocol):
    """Called under the session's lock, in the order in which things happen; never waits."""

    def keep(self, observation: AnyObservation) -> AnyObservation:
        """Take what a source saw; returns it as the recording will have it."""

    def looked(self, now_ns: int) -> None:
        """The verdict is being judged at this moment."""
