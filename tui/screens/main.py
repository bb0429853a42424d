"""The main screen: the verdict always, and below it one of the views."""

from functools import cached_property

from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen

from tui.screens.tabs import TABS, Tab
from tui.widgets.footer import Footer
from tui.widgets.header import Header
from tui.widgets.panel import ROLE_CLASSES, Panel
from tui.widgets.sawtooth import SawtoothPanel, columns_of_width
from tui.widgets.tabs import TabsRow
from tui.widgets.verdict import VerdictPanel
from tui.widgets.view import View

DEFAULT_COLUMNS = 80
"""Of a chart that is not laid out yet."""


class MainScreen(Screen[None]):
    """Which panels a view has is in `tabs/`; how large they are is in the stylesheets.

    The screen has the class `-tab-NAME` of the view that is shown; the others' panels have no size,
    and so draw nothing. A view's panels are made when it is first shown.
    """

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

    def __init__(self) -> None:
        super().__init__()
        self.tab = TABS[0]

    def compose(self) -> ComposeResult:
        """Header, verdict, the views' bodies of which one is shown, footer."""
        yield Header("header")
        yield VerdictPanel("verdict")
        yield TabsRow("tabs")
        for tab in TABS:
            with Container(id=tab.name, classes="body"):
                if tab is self.tab:
                    yield from tab.panels()
        yield Footer("footer")

    def on_mount(self) -> None:
        """The first view."""
        self.add_class(f"-tab-{self.tab.name}")

    async def turn_to(self, tab: Tab) -> None:
        """Show another view."""
        if tab is self.tab:
            return
        self._end_zoom()
        self.set_focus(None)
        body = self.query_one(f"#{tab.name}")
        if not body.children:
            await body.mount(*tab.panels())
        self.remove_class(f"-tab-{self.tab.name}")
        self.tab = tab
        self.add_class(f"-tab-{tab.name}")

    def show(self, view: View) -> None:
        """Draw a frame."""
        self.set_class(bool(view.snapshot.verdict.notes), "-noted")
        for panel in self._frame:
            panel.show(view)
        for panel in self.query(f"#{self.tab.name} > Panel").results(Panel):
            panel.show(view)

    @cached_property
    def _frame(self) -> list[Panel]:
        """What stands around every view."""
        return list(self.query("MainScreen > Panel").results(Panel))

    @property
    def chart_columns(self) -> int:
        """Columns of the sawtooth as it is laid out now."""
        for panel in self.query(SawtoothPanel):
            if panel.size.width:
                return columns_of_width(panel.size.width)
        return DEFAULT_COLUMNS

    @property
    def zoomed(self) -> bool:
        """One panel has the body for itself."""
        return self.has_class("-zoomed")

    def zoom(self) -> None:
        """The focused panel, or else the view's first, alone: and back."""
        if self.zoomed:
            self._end_zoom()
            return
        body = self.query_one(f"#{self.tab.name}")
        focused = self.focused
        if focused is None or focused.parent not in (body, self):
            focused = next(iter(body.children))
        focused.add_class("-large")
        self.add_class("-zoomed")
        self.set_class(focused.parent is self, "-zoomed-verdict")

    def _end_zoom(self) -> None:
        self.remove_class("-zoomed", "-zoomed-verdict")
        for panel in self.query(".-large"):
            panel.remove_class("-large")
