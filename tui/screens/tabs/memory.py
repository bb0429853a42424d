"""Memory: who holds how much, and where it is heading."""

from collections.abc import Sequence

from tui.widgets.memory import MemoryPanel
from tui.widgets.panel import Panel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (MemoryPanel("memory-memory"),)
