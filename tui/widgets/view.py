"""What a panel draws from: the snapshot, and how the person wants to see it."""

from dataclasses import dataclass

from tui.snapshot import Snapshot
from tui.widgets.charset import Charset


@dataclass(frozen=True, slots=True)
class View:
    """One frame."""

    snapshot: Snapshot
    window_s: int
    charset: Charset
    behind_s: float | None
    """How far a paused view lags; None while it runs."""

    @property
    def ended(self) -> bool:
        """The target is gone; the picture is its last."""
        return self.snapshot.status.state == "ended"


def shown_at_ns(snapshot: Snapshot) -> int:
    """The moment that the picture shows: now, or the last thing seen of a target that is gone."""
    saw = snapshot.sawtooth
    if snapshot.status.state == "ended" and saw and saw.samples:
        return min(snapshot.t_ns, saw.samples[-1].t_ns)
    return snapshot.t_ns
