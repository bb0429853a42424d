"""Stacks: where the threads are while the GPU is idle, busy, or at any time."""

from collections.abc import Sequence

from tui.widgets.panel import Panel
from tui.widgets.stacks.panel import PlacesPanel
from tui.widgets.stacks.tree import StackTreePanel


def panels() -> Sequence[Panel]:
    """In the order in which they stand."""
    return (StackTreePanel("stacks-tree"), PlacesPanel("stacks-places"))
