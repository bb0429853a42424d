"""The GPU: what it does, how it is, and who else is on it."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.sawtooth import SawtoothPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (SawtoothPanel("gpu-sawtooth"),)
