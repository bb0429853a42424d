"""The GPU: what it does, how it is, who else is on it, and the ranks beside this one."""

from collections.abc import Sequence

from tui.widgets.gpu.charts import GpuChartsPanel
from tui.widgets.gpu.ranks import RanksPanel
from tui.widgets.gpu.told import GpuToldPanel
from tui.widgets.panel import Panel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (GpuChartsPanel("gpu-charts"), RanksPanel("gpu-ranks"), GpuToldPanel("gpu-told"))
