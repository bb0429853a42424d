"""The overview: the picture that proves the verdict, then detail."""

from collections.abc import Sequence

from tui.widgets.events import EventsPanel
from tui.widgets.memory import MemoryPanel
from tui.widgets.panel import Panel
from tui.widgets.processes import ProcessesPanel
from tui.widgets.sawtooth import SawtoothPanel
from tui.widgets.stacks import StacksPanel
from tui.widgets.step import StepPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (
        SawtoothPanel("overview-sawtooth"),
        StepPanel("overview-step"),
        StacksPanel("overview-stacks"),
        MemoryPanel("overview-memory"),
        ProcessesPanel("overview-processes"),
        EventsPanel("overview-events"),
    )
