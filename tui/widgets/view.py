"""What a panel draws from: the snapshot, and how the person wants to see it."""

from dataclasses import dataclass
from typing import Literal

from tui.snapshot import Snapshot
from tui.widgets.charset import Charset

StacksWhen = Literal["idle", "busy", "all"]


@dataclass(frozen=True, slots=True)
class View:
    """One frame."""

    snapshot: Snapshot
    window_s: int
    charset: Charset
    behind_s: float | None
    """How far a paused view lags; None while it runs."""
    tab: str = "overview"
    """Which of the views is shown."""
    at_ns: int | None = None
    """Where the charts end, when a person went back in time; None: at `shown_at_ns`."""
    cursor_ns: int | None = None
    """The moment that the cursor of the charts reads; None: no cursor."""
    stacks_when: StacksWhen = "idle"
    """Which stacks are counted: those sampled while the GPU was idle, busy, or all."""
    device: int | None = None
    """The GPU that a person chose (NVML's index); None: all of them, or the first."""
    baseline: Snapshot | None = None
    """What the numbers are compared with; None: nothing was marked."""
    panel: str = ""
    """Kind of the focused panel (`Panel.KIND`): its keys stand first in the footer."""

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
