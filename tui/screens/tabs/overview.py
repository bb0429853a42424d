"""The overview: the picture that proves the verdict, then detail."""

from collections.abc import Sequence

from tui.widgets.charts.sawtooth import SawtoothPanel
from tui.widgets.gpu.ranks import RanksPanel
from tui.widgets.memory.panel import MemoryPanel
from tui.widgets.panel import Panel
from tui.widgets.processes.events import EventsPanel
from tui.widgets.processes.panel import ProcessesPanel
from tui.widgets.stacks.panel import StacksPanel
from tui.widgets.steps.step import StepPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (
        SawtoothPanel("overview-sawtooth"),
        RanksPanel("overview-ranks"),
        StepPanel("overview-step"),
        StacksPanel("overview-stacks"),
        MemoryPanel("overview-memory"),
        ProcessesPanel("overview-processes"),
        EventsPanel("overview-events"),
    )
