"""The doctor: what is measured, what is not, why, and the command that changes it."""

from collections.abc import Callable

from tui.doctor.checks import examine
from tui.doctor.facts import Facts
from tui.screens.dialog import Dialog
from tui.widgets.doctor import doctor_rows
from tui.widgets.spans import Row
from tui.widgets.view import View

Gather = Callable[[int], Facts]


def facts_here(pid: int) -> Facts:
    """The facts around a process of this machine."""
    from tui.sources.surroundings import facts_of

    return facts_of(pid)


class DoctorScreen(Dialog):
    """Judges each frame anew; the facts of the surroundings come from a thread of their own."""

    def __init__(self, view: View, gather: Gather) -> None:
        self._facts: Facts | None = None
        self._gather = gather
        super().__init__("Doctor", self._rows, view)

    def on_mount(self) -> None:
        """Look around. A recording's machine is not this one, nor is one whose process has gone."""
        snapshot = self.view.snapshot
        if snapshot.status.replay is None and snapshot.status.state != "ended":
            self.run_worker(self._look, thread=True, exit_on_error=False)

    def _look(self) -> None:
        self._facts = self._gather(self.view.snapshot.pid)

    def _rows(self, view: View, width: int) -> list[Row]:
        return doctor_rows(examine(self._facts, view.snapshot), width)
