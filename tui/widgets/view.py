"""What a panel draws from: the snapshot, and how the person wants to see it."""

from dataclasses import dataclass

from tui.snapshot import Snapshot
from tui.source_text import SourceReader, nobody_reads
from tui.stack_trees import StacksWhen
from tui.widgets.charset import Charset


@dataclass(frozen=True, slots=True)
class View:
    """One frame."""

    snapshot: Snapshot
    window_s: int
    """The time that the charts show; of those of slow quantities only where a person chose it."""
    charset: Charset
    behind_s: float | None
    """How far a paused view lags; None while it runs."""
    window_chosen: bool = False
    """A person chose `window_s`; else it fits the steps, and slow quantities show all of theirs."""
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
    read_source: SourceReader = nobody_reads
    """Reads the lines around a frame; it may wait for a disk."""

    @property
    def ended(self) -> bool:
        """The target is gone; the picture is its last."""
        return self.snapshot.status.state == "ended"


def shown_at_ns(snapshot: Snapshot) -> int:
    """The moment that the picture shows: now, or the last thing seen of a target that is gone."""
    saw = snapshot.sawtooth
    if snapshot.status.state == "ended" and saw:
        return min(snapshot.t_ns, saw.series.end_ns)
    return snapshot.t_ns


def charts_end_ns(view: View) -> int:
    """Where the charts end: at the moment that a person went back to, else at `shown_at_ns`."""
    return shown_at_ns(view.snapshot) if view.at_ns is None else view.at_ns
