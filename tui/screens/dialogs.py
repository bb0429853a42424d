"""The doctor: what is measured, what is not, why, and the command that changes it."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.screen import ModalScreen

from ..doctor.checks import examine
from ..model.machine_facts import MachineFacts
from ..widgets.dialogs import Content, Page, doctor_rows, help_rows
from ..widgets.panel import ROLE_CLASSES, View
from ..widgets.text import Row
from .stylesheets import HEIGHTS, WIDTHS

# What opens above the main screen: one page, below the verdict, which stays in sight.


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


Gather = Callable[[int], MachineFacts]


def facts_here(pid: int) -> MachineFacts:
    """The facts around a process of this machine."""
    from ..sources.surroundings import facts_of

    return facts_of(pid)


class DoctorScreen(Dialog):
    """Judges each frame anew; the facts of the surroundings come from a thread of their own."""

    def __init__(self, view: View, gather: Gather) -> None:
        self._facts: MachineFacts | None = None
        self._gather = gather
        super().__init__("Doctor", self._rows, view)

    def on_mount(self) -> None:
        """Look around. A recording's machine is not this one, nor is that of a process on another,
        nor one whose process has ended."""
        status = self.view.snapshot.status
        if status.replay is None and status.link is None and status.state != "ended":
            self.run_worker(self._look, thread=True, exit_on_error=False)

    def _look(self) -> None:
        self._facts = self._gather(self.view.snapshot.pid)

    def _rows(self, view: View, width: int) -> list[Row]:
        return doctor_rows(examine(self._facts, view.snapshot), width)


# The help: every key, those of the focused panel first, and how to read the picture.


class HelpScreen(Dialog):
    """For the panel that had the focus when it was opened."""

    def __init__(self, view: View) -> None:
        super().__init__("Help", lambda _, width: help_rows(view.panel, width), view)
