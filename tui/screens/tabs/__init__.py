"""The six views: what each is called and which panels it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from tui.widgets.panel import Panel
from tui.widgets.tabs import NAMES


@dataclass(frozen=True, slots=True)
class Tab:
    """One view. Its module `tui.screens.tabs.NAME` has `panels()`, and is imported when the view
    is first shown: the first frame must not wait for the others."""

    name: str

    def panels(self) -> Sequence[Panel]:
        """Fresh panels, in the order in which they stand."""
        made: Sequence[Panel] = import_module(f"{__name__}.{self.name}").panels()
        return made


TABS = tuple(Tab(name) for name in NAMES)


def tab_named(name: str) -> Tab:
    """The view of that name. Raises StopIteration for another."""
    return next(tab for tab in TABS if tab.name == name)
