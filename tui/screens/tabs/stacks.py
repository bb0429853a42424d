"""Stacks: where the threads are while the GPU is idle, busy, or at any time."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.stacks import StacksPanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (StacksPanel("stacks-stacks"),)
