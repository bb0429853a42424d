"""The overview: verdict, the picture that proves it, then detail."""

from functools import cached_property

from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen

from tui.screens.actions import footer_keys
from tui.widgets.events import EventsPanel
from tui.widgets.footer import Footer
from tui.widgets.header import Header
from tui.widgets.memory import MemoryPanel
from tui.widgets.panel import ROLE_CLASSES, Panel
from tui.widgets.processes import ProcessesPanel
from tui.widgets.sawtooth import SawtoothPanel, columns_of_width
from tui.widgets.stacks import StacksPanel
from tui.widgets.step import StepPanel
from tui.widgets.verdict import VerdictPanel
from tui.widgets.view import View


class OverviewScreen(Screen[None]):
    """Everything at once; which parts, and how large, is in the stylesheet."""

    AUTO_FOCUS = ""
    COMPONENT_CLASSES = ROLE_CLASSES
    HORIZONTAL_BREAKPOINTS = [
        (0, "-tiny-wide"),
        (40, "-floor-wide"),
        (60, "-normal-wide"),
        (100, "-roomy-wide"),
        (160, "-huge-wide"),
    ]
    VERTICAL_BREAKPOINTS = [
        (0, "-tiny-tall"),
        (12, "-floor-tall"),
        (24, "-normal-tall"),
        (30, "-roomy-tall"),
        (50, "-huge-tall"),
    ]

    def compose(self) -> ComposeResult:
        """Panels in the order in which they stand below each other."""
        yield Header("header")
        yield VerdictPanel("verdict")
        with Container(id="body"):
            yield SawtoothPanel("sawtooth")
            yield StepPanel("step")
            yield StacksPanel("stacks")
            yield MemoryPanel("memory")
            yield ProcessesPanel("processes")
            yield EventsPanel("events")
        yield Footer("footer", footer_keys())

    @cached_property
    def _panels(self) -> list[Panel]:
        """The panels never change: they are looked up once."""
        return list(self.query(Panel))

    def show(self, view: View) -> None:
        """Draw a frame."""
        self.set_class(bool(view.snapshot.verdict.notes), "-noted")
        for panel in self._panels:
            panel.show(view)

    @property
    def chart_columns(self) -> int:
        """Columns of the sawtooth as it is laid out now."""
        return columns_of_width(self.query_one("#sawtooth").size.width)

    @property
    def zoomed(self) -> bool:
        """One panel has the body for itself."""
        return self.has_class("-zoomed")

    def zoom(self) -> None:
        """The focused panel, or else the sawtooth, alone: and back."""
        if self.zoomed:
            self.remove_class("-zoomed")
            for panel in self._panels:
                panel.remove_class("-large")
            return
        body = self.query_one("#body")
        focused = self.focused
        if focused is None or focused.parent is not body:
            focused = self.query_one("#sawtooth")
        focused.add_class("-large")
        self.add_class("-zoomed")
