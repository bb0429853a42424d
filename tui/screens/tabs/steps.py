"""The steps: where their time goes, on both clocks."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.step import StepPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (StepPanel("steps-step"),)
