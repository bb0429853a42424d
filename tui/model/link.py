"""How the link to another machine is doing, for every face."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """The link to the agent of another machine."""

    place: str
    """The host, or the command that leads there."""
    lost_s: float | None
    """How long it has been lost; None while it works."""
    why: str
    """Why it was lost; "" while it works."""
    round_trip_ms: float | None
    """The shortest of the last ones."""
    ahead_ms: float | None
    """The time of day there less the time of day here."""
    uncertain_ms: float | None
    """Half the round trip: what that figure leaves open."""
    bytes_s: float | None
    """Received, over the last seconds."""
    left_out: int
    """Rows that the link was too slow for."""
