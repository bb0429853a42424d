"""What opens above the main screen: one page, below the verdict, which stays in sight."""

from textual.app import ComposeResult
from textual.screen import ModalScreen

from tui.screens.breakpoints import HEIGHTS, WIDTHS
from tui.widgets.page import Content, Page
from tui.widgets.panel import ROLE_CLASSES
from tui.widgets.view import View


class Dialog(ModalScreen[None]):
    """A page of rows; the running picture behind it goes on."""

    AUTO_FOCUS = "#page"
    COMPONENT_CLASSES = ROLE_CLASSES
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, title: str, content: Content, view: View) -> None:
        super().__init__()
        self.view = view
        """The newest."""
        self._page = Page(title, content)
        self._page.show(view)

    def compose(self) -> ComposeResult:
        """The page."""
        yield self._page

    def show(self, view: View) -> None:
        """Draw a frame."""
        self.view = view
        self._page.show(view)
