"""Processes and events."""

from collections.abc import Sequence

from tui.widgets.events import EventsPanel
from tui.widgets.panel import Panel
from tui.widgets.processes import ProcessesPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (ProcessesPanel("processes-processes"), EventsPanel("processes-events"))
