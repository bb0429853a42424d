"""Processes and events."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.processes.cores import CoresPanel
from tui.widgets.processes.events import EventsPanel
from tui.widgets.processes.panel import ProcessesPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (
        ProcessesPanel("processes-processes"),
        CoresPanel("processes-cores"),
        EventsPanel("processes-events"),
    )
