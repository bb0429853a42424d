"""The steps: where their time goes, on both clocks."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.steps.lens import LensPanel
from tui.widgets.steps.phase_table import PhaseTable
from tui.widgets.steps.scope import ScopePanel
from tui.widgets.steps.step_times import StepTimes


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (
        LensPanel("steps-lens"),
        PhaseTable("steps-phases"),
        ScopePanel("steps-scope"),
        StepTimes("steps-times"),
    )
