"""Memory: who holds how much, and where it is heading."""

from collections.abc import Sequence

from tui.widgets.memory.charts import MemoryChartsPanel
from tui.widgets.memory.room import MemoryRoomPanel
from tui.widgets.memory.trends import MemoryTrendsPanel
from tui.widgets.panel import Panel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (
        MemoryRoomPanel("memory-room"),
        MemoryTrendsPanel("memory-trends"),
        MemoryChartsPanel("memory-charts"),
    )
